#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "compiler/onnx/pytorch/pytorch_exporters.h"
#include "compiler/onnx/pytorch/recurrent_parameters.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

// Names that the exporter gives to what it folds.
constexpr absl::string_view kFolded = "onnx::";

std::string Parent(absl::string_view name) {
  const size_t dot = name.rfind('.');
  return std::string(name.substr(0, dot == absl::string_view::npos ? 0 : dot));
}

// Operand k, "" if there is none.
const std::string& Operand(const onnx::NodeProto& node, int k) {
  static const std::string kNone;
  return k < node.input_size() ? node.input(k) : kNone;
}

class ScopeNames {
 public:
  ScopeNames(onnx::GraphProto& graph, ParameterEditor& editor, PyTorchParameters& result)
      : graph_(graph), editor_(editor), result_(result) {}

  absl::Status Restore() {
    RETURN_IF_ERROR(Unmerge());
    for (auto& node : *graph_.mutable_node()) {
      for (const std::string& name : node.input()) {
        if (editor_.Find(name) && !absl::StartsWith(name, kFolded)) modules_.insert(Parent(name));
      }
      for (const std::string& name : node.input()) adds_[name] = node.op_type() == "Add" ? &node : nullptr;
      if (node.op_type() == "Gather" && editor_.Find(Operand(node, 0))) tables_.push_back(node.input(0));
    }
    CountScopes();
    for (auto& node : *graph_.mutable_node()) {
      if (node.op_type() == "MatMul") RETURN_IF_ERROR(RestoreWeight(node));
      if (IsRecurrent(node)) RETURN_IF_ERROR(RestoreLayer(node));
      if (node.op_type() == "BatchNormalization" && absl::EndsWith(Operand(node, 3), ".running_mean")) {
        AddBatchCounter(Parent(node.input(3)), editor_, result_);
      }
    }
    return absl::OkStatus();
  }

 private:
  // An initializer that was merged with another of equal values is spelt as an Identity of it.
  absl::Status Unmerge() {
    absl::flat_hash_map<std::string, std::string> merged;
    for (const auto& node : graph_.node()) {
      const bool merges =
          node.op_type() == "Identity" && node.output_size() == 1 && editor_.Find(Operand(node, 0));
      if (merges) merged[node.output(0)] = node.input(0);
    }
    if (merged.empty()) return absl::OkStatus();
    for (const auto& output : graph_.output()) merged.erase(output.name());
    for (auto& node : *graph_.mutable_node()) {
      for (int k = 0; k < node.input_size(); ++k) {
        auto it = merged.find(node.input(k));
        if (it == merged.end()) continue;
        const std::string name = node.input(k);
        node.set_input(k, it->second);
        ASSIGN_OR_RETURN(const bool done, editor_.Use(node, k, name, /*transposed=*/false));
        if (!done) node.set_input(k, name);
      }
    }
    google::protobuf::RepeatedPtrField<onnx::NodeProto> left;
    for (auto& node : *graph_.mutable_node()) {
      const bool merges =
          node.op_type() == "Identity" && node.output_size() == 1 && merged.contains(node.output(0));
      if (!merges) left.Add()->Swap(&node);
    }
    graph_.mutable_node()->Swap(&left);
    return absl::OkStatus();
  }

  // The second operand of a MatMul, if it is the transpose of a Linear's weight.
  absl::Status RestoreWeight(onnx::NodeProto& node) {
    const std::string operand = Operand(node, 1);
    if (!absl::StartsWith(operand, kFolded) || !editor_.Find(operand)) return absl::OkStatus();
    const std::string weight = WeightOf(node);
    if (weight.empty()) return absl::OkStatus();
    // The projection onto a vocabulary may share its weight with the embedding table: then folding copied it.
    for (const std::string& table : tables_) {
      if (table == weight) continue;
      ASSIGN_OR_RETURN(const bool tied, editor_.AreEqual(table, operand, /*transposed=*/true));
      if (!tied) continue;
      RETURN_IF_ERROR(editor_.Use(node, 1, table, /*transposed=*/true).status());
      if (!editor_.Find(weight)) {
        editor_.AddAlias(weight, table);
        result_.tied[weight] = table;
      }
      return absl::OkStatus();
    }
    return editor_.Use(node, 1, weight, /*transposed=*/true).status();
  }

  // From the name of the bias that is added to the product; without one from the node's own name, if its scope
  // may be that of a Linear. "" if neither says what the weight is called.
  std::string WeightOf(const onnx::NodeProto& node) const {
    if (auto it = adds_.find(node.output_size() > 0 ? node.output(0) : ""); it != adds_.end() && it->second) {
      for (const std::string& name : it->second->input()) {
        const onnx::TensorProto* bias = editor_.Find(name);
        if (!bias || Scope(it->second->name()) != Scope(node.name())) continue;
        if (absl::EndsWith(name, ".bias")) return absl::StrCat(Parent(name), ".weight");
        if (absl::EndsWith(name, ".in_proj_bias") && IsFusedProjection(node.input(1), *bias)) {
          return absl::StrCat(Parent(name), ".in_proj_weight");
        }
      }
    }
    const std::string module = ModuleOf(node.name());
    return module.empty() || !IsLinear(node) ? "" : absl::StrCat(module, ".weight");
  }

  // Whether the operand, [in,3*in], gives the queries, keys and values of a MultiheadAttention in one product.
  bool IsFusedProjection(const std::string& operand, const onnx::TensorProto& bias) const {
    const onnx::TensorProto& weight = *editor_.Find(operand);
    return weight.dims_size() == 2 && bias.dims_size() == 1 && weight.dims(1) % 3 == 0 &&
           weight.dims(1) / 3 == weight.dims(0) && bias.dims(0) == weight.dims(1);
  }

  // A Linear multiplies once and adds; other modules that multiply by a weight of theirs do more.
  bool IsLinear(const onnx::NodeProto& product) const {
    auto it = scopes_.find(Scope(product.name()));
    return it != scopes_.end() && it->second.products == 1 && it->second.others == 0;
  }

  void CountScopes() {
    for (const auto& node : graph_.node()) {
      ScopeContent& content = scopes_[Scope(node.name())];
      const std::string& op = node.op_type();
      if (op == "MatMul") {
        ++content.products;
      } else if (op != "Add" && op != "Constant" && op != "Cast") {
        ++content.others;
      }
    }
  }

  static std::string Scope(absl::string_view node) { return std::string(node.substr(0, node.rfind('/'))); }

  // "/model/layers.0/fc/MatMul" -> model.layers.0.fc. A module in a list is written with the list's name, and
  // if the list itself was called, after it: "/net/net.0/MatMul" is net.0, unless net has parameters under
  // net.net.
  std::string ModuleOf(absl::string_view node) const {
    if (!absl::ConsumePrefix(&node, "/")) return "";
    std::vector<std::string> parts = absl::StrSplit(node, '/');
    parts.pop_back();
    std::string module, previous;
    for (const std::string& part : parts) {
      const std::string nested = module.empty() ? part : absl::StrCat(module, ".", part);
      const bool in_called_list = !previous.empty() && absl::StartsWith(part, absl::StrCat(previous, ".")) &&
                                  !modules_.contains(nested);
      module = in_called_list ? absl::StrCat(module, part.substr(previous.size())) : nested;
      previous = part;
    }
    return module;
  }

  absl::Status RestoreLayer(onnx::NodeProto& node) {
    const std::string module = ModuleOf(node.name());
    if (node.name().empty() || node.input_size() < 3 || !editor_.Find(node.input(1))) return absl::OkStatus();
    const bool biases = !Operand(node, 3).empty();
    const int layer = layers_[module]++;
    return UseRecurrent(editor_, node, NamesOfLayer(module, layer, Directions(node), biases)).status();
  }

  struct ScopeContent {
    int products = 0;  // MatMul nodes
    int others = 0;    // nodes that a Linear has not
  };

  onnx::GraphProto& graph_;
  ParameterEditor& editor_;
  PyTorchParameters& result_;
  absl::flat_hash_map<std::string, ScopeContent> scopes_;
  absl::flat_hash_set<std::string> modules_;  // that have parameters whose names survived
  absl::flat_hash_map<std::string, const onnx::NodeProto*> adds_;  // value -> the Add that reads it last
  std::vector<std::string> tables_;                                // of embeddings
  absl::flat_hash_map<std::string, int> layers_;                   // recurrent layers met, by module
};

}  // namespace

absl::Status RestoreFromScopes(onnx::GraphProto& graph, ParameterEditor& editor, PyTorchParameters& result) {
  return ScopeNames(graph, editor, result).Restore();
}

}  // namespace pipec
