#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/onnx/first_names.h"
#include "compiler/onnx/pytorch/fx_metadata.h"
#include "compiler/onnx/pytorch/pytorch_exporters.h"
#include "compiler/onnx/pytorch/recurrent_parameters.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

bool IsFloat(const onnx::TensorProto& proto) {
  switch (proto.data_type()) {
    case onnx::TensorProto::FLOAT:
    case onnx::TensorProto::DOUBLE:
    case onnx::TensorProto::FLOAT16:
    case onnx::TensorProto::BFLOAT16:
      return true;
    default:
      return false;
  }
}

int64_t IntAttribute(const onnx::NodeProto& node, absl::string_view name) {
  for (const auto& attribute : node.attribute()) {
    if (attribute.name() == name) return attribute.i();
  }
  return 0;
}

std::string Leaf(absl::string_view name) { return std::string(name.substr(name.rfind('.') + 1)); }

class FxNames {
 public:
  FxNames(onnx::GraphProto& graph, absl::string_view signature, ParameterEditor& editor,
          PyTorchParameters& result)
      : graph_(graph), signature_(ParseSignature(signature)), editor_(editor), result_(result) {
    for (const auto& [name, entry] : signature_) by_name_[entry.name] = name;
  }

  absl::Status Restore() {
    for (auto& node : *graph_.mutable_node()) {
      const FxCall call = CallOf(node);
      for (const std::string& argument : call.arguments) mentioned_.insert(argument);
      for (const auto& list : call.lists) mentioned_.insert(list.begin(), list.end());
      RETURN_IF_ERROR(IsRecurrent(node) ? RestoreLayer(node, call) : RestoreOperands(node, call));
    }
    for (const auto& node : graph_.node()) FindTied(CallOf(node));
    RETURN_IF_ERROR(RestoreFoldedTable());
    for (const auto& [name, entry] : signature_) {
      if (Leaf(entry.name) == "num_batches_tracked" && entry.persistent) {
        AddBatchCounter(entry.name.substr(0, entry.name.rfind('.')), editor_, result_);
      }
    }
    RETURN_IF_ERROR(FixConstants());
    NoteMissing();
    return absl::OkStatus();
  }

 private:
  // The state_dict's name of argument k of the call; "" if it is no parameter.
  std::string Parameter(const FxCall& call, size_t k) const {
    if (k >= call.arguments.size()) return "";
    auto it = signature_.find(call.arguments[k]);
    return it == signature_.end() ? "" : it->second.name;
  }

  absl::Status Use(onnx::NodeProto& node, int k, const std::string& parameter, bool transposed) {
    if (parameter.empty() || k >= node.input_size()) return absl::OkStatus();
    if (node.input(k) == parameter && !transposed) return absl::OkStatus();
    return editor_.Use(node, k, parameter, transposed).status();
  }

  absl::Status RestoreOperands(onnx::NodeProto& node, const FxCall& call) {
    const std::string& op = node.op_type();
    const bool linear = absl::StartsWith(call.target, "aten.linear.");
    const bool addmm = absl::StartsWith(call.target, "aten.addmm.");
    if (linear || addmm) {
      const std::string weight = Parameter(call, linear ? 1 : 2), bias = Parameter(call, linear ? 2 : 0);
      if (op == "MatMul") return Use(node, 1, weight, linear);
      if (op == "Gemm") {
        const bool transposed = IntAttribute(node, "transB") != 0;
        RestoreZeroBias(node, bias, transposed ? 0 : 1);
        RETURN_IF_ERROR(Use(node, 1, weight, linear != transposed));
        return Use(node, 2, bias, false);
      }
      if (op == "Add") {
        for (int k = 0; k < node.input_size(); ++k) {
          if (editor_.Find(node.input(k))) return Use(node, k, bias, false);
        }
      }
      return absl::OkStatus();
    }
    if (op == "Conv" && absl::StrContains(call.target, "conv")) {
      RestoreZeroBias(node, Parameter(call, 2), 0);
      RETURN_IF_ERROR(Use(node, 1, Parameter(call, 1), false));
      return Use(node, 2, Parameter(call, 2), false);
    }
    if (op != "Conv") return UnmergeInOrder(node, call);
    return absl::OkStatus();
  }

  // A bias of zeros is dropped from a Gemm or a Conv: it has as many elements as the operand that is the
  // weight, in the layout in which the node reads it, has along `axis`.
  void RestoreZeroBias(onnx::NodeProto& node, const std::string& bias, int axis) {
    const bool absent = node.input_size() == 2 || (node.input_size() == 3 && node.input(2).empty());
    if (bias.empty() || !absent) return;
    const std::string operand = node.input(1);
    const onnx::TensorProto* weight = editor_.Find(operand);
    if (!weight) return;
    while (node.input_size() < 3) node.add_input();
    node.set_input(2, bias);
    if (editor_.Find(bias) || axis >= weight->dims_size()) return;
    const int64_t length = weight->dims(axis);
    const int64_t element = weight->data_type() == onnx::TensorProto::DOUBLE  ? 8
                            : weight->data_type() == onnx::TensorProto::FLOAT ? 4
                                                                              : 2;
    editor_.Add(bias, weight->data_type(), {length}, std::string(length * element, '\0'));
  }

  // Of other calls the parameters are operands in the same order; a wrong name is that of an equal one.
  absl::Status UnmergeInOrder(onnx::NodeProto& node, const FxCall& call) {
    std::vector<std::string> wanted;
    for (size_t k = 0; k < call.arguments.size(); ++k) {
      if (const std::string name = Parameter(call, k); !name.empty()) wanted.push_back(name);
    }
    std::vector<int> operands;
    for (int k = 0; k < node.input_size(); ++k) {
      if (IsParameter(node.input(k))) operands.push_back(k);
    }
    if (wanted.size() != operands.size()) return absl::OkStatus();
    for (size_t k = 0; k < operands.size(); ++k) {
      if (std::find(wanted.begin(), wanted.end(), node.input(operands[k])) != wanted.end()) continue;
      RETURN_IF_ERROR(Use(node, operands[k], wanted[k], false));
    }
    return absl::OkStatus();
  }

  bool IsParameter(const std::string& initializer) const {
    return editor_.Find(initializer) && by_name_.contains(initializer);
  }

  // aten.lstm(x, [states], [parameters of layer 0, of layer 0 reverse, ...], has_biases, ...): one node a
  // layer.
  absl::Status RestoreLayer(onnx::NodeProto& node, const FxCall& call) {
    const std::vector<std::string>* list = nullptr;
    for (const auto& candidate : call.lists) {
      if (!candidate.empty() && signature_.contains(candidate[0])) list = &candidate;
    }
    if (!list) return absl::OkStatus();
    const bool biases = node.input_size() > 3 && !node.input(3).empty();
    const size_t each = biases ? 4 : 2, directions = Directions(node);
    size_t& next = next_recurrent_[call.result];
    if (next + each * directions > list->size()) return absl::OkStatus();
    std::vector<RecurrentNames> names;
    for (size_t d = 0; d < directions; ++d, next += each) {
      std::vector<std::string> found;
      for (size_t k = 0; k < each; ++k) {
        auto it = signature_.find((*list)[next + k]);
        if (it == signature_.end()) return absl::OkStatus();
        found.push_back(it->second.name);
      }
      names.push_back({found[0], found[1], biases ? found[2] : "", biases ? found[3] : ""});
    }
    return UseRecurrent(editor_, node, names).status();
  }

  // A module that uses another module's parameter, and whose own parameter of that name nobody mentions,
  // shares it.
  void FindTied(const FxCall& call) {
    for (size_t k = 0; k < call.arguments.size(); ++k) {
      const std::string used = Parameter(call, k);
      if (used.empty() || call.module.empty() || absl::StartsWith(used, absl::StrCat(call.module, ".")))
        continue;
      const std::string own = absl::StrCat(call.module, ".", Leaf(used));
      auto it = by_name_.find(own);
      if (it == by_name_.end() || mentioned_.contains(it->second) || editor_.Find(own) || !editor_.Find(used))
        continue;
      editor_.AddAlias(own, used);
      result_.tied[own] = used;
    }
  }

  // Rows of an embedding table at constant positions are folded into "embedding", [1, positions, width]. If
  // it is the only such tensor, and there is one parameter that no call mentions, that is the table.
  absl::Status RestoreFoldedTable() {
    std::vector<std::string> missing = Missing(), tables;
    for (const auto& proto : graph_.initializer()) {
      const bool folded = absl::StartsWith(proto.name(), "embedding") && !IsParameter(proto.name()) &&
                          IsFloat(proto) && proto.dims_size() == 3 && proto.dims(0) == 1;
      if (folded) tables.push_back(proto.name());
    }
    if (missing.size() != 1 || tables.size() != 1 || !absl::EndsWith(missing[0], ".weight"))
      return absl::OkStatus();
    const onnx::TensorProto table = *editor_.Find(tables[0]);
    ASSIGN_OR_RETURN(std::string bytes, editor_.Contents(tables[0]));
    editor_.Add(missing[0], table.data_type(), {table.dims(1), table.dims(2)}, std::move(bytes));
    const std::string shape = absl::StrCat(missing[0], "/shape");
    const int64_t dims[] = {1, table.dims(1), table.dims(2)};
    editor_.Add(shape, onnx::TensorProto::INT64, {3},
                std::string(reinterpret_cast<const char*>(dims), sizeof(dims)));
    onnx::NodeProto& reshape = editor_.AddNode("Reshape", absl::StrCat(missing[0], "/rows"));
    reshape.add_input(missing[0]);
    reshape.add_input(shape);
    editor_.Replace(tables[0], reshape.output(0));
    result_.notes.push_back(
        absl::StrCat("parameter ", missing[0], " has the ", table.dims(1),
                     " rows that the exporter kept; export with dynamo=True, optimize=False to keep all"));
    return absl::OkStatus();
  }

  // Parameters of the module that are not in the graph.
  std::vector<std::string> Missing() const {
    std::vector<std::string> missing;
    for (const auto& [name, entry] : signature_) {
      if (entry.learns && !editor_.Find(entry.name)) missing.push_back(entry.name);
    }
    std::sort(missing.begin(), missing.end());
    return missing;
  }

  // A weight that is used as it is and transposed too (a tied head): the exporter folded the transpose into a
  // tensor of its own, which is the parameter's transpose again.
  absl::StatusOr<bool> TieTranspose(const std::string& table) {
    const onnx::TensorProto* proto = editor_.Find(table);
    if (!proto || proto->dims_size() != 2) return false;
    ASSIGN_OR_RETURN(const std::string bytes, editor_.Contents(table));
    // Equal numbers throughout equal those of others by accident.
    const size_t size = bytes.size() / std::max<int64_t>(proto->dims(0) * proto->dims(1), 1);
    if (bytes.size() <= size || std::memcmp(bytes.data(), bytes.data() + size, bytes.size() - size) == 0)
      return false;
    std::string parameter;
    for (const auto& other : graph_.initializer()) {
      auto it = by_name_.find(other.name());
      if (it == by_name_.end() || !signature_.at(it->second).learns) continue;
      if (other.data_type() != proto->data_type() || other.dims_size() != 2) continue;
      if (other.dims(0) != proto->dims(1) || other.dims(1) != proto->dims(0)) continue;
      ASSIGN_OR_RETURN(const bool equal, editor_.AreEqual(table, other.name(), /*transposed=*/true));
      if (equal) parameter = other.name();
      if (equal) break;
    }
    if (parameter.empty()) return false;
    bool all = true;
    for (auto& node : *graph_.mutable_node()) {
      for (int k = 0; k < node.input_size(); ++k) {
        if (node.input(k) != table) continue;
        ASSIGN_OR_RETURN(const bool used, editor_.Use(node, k, parameter, /*transposed=*/true));
        all &= used;
      }
    }
    if (all) editor_.Drop(table);
    return all;
  }

  // A float tensor that the module does not know as a parameter is a table or a buffer: nothing to learn. The
  // running statistics of a BatchNormalization are left to that op.
  absl::Status FixConstants() {
    absl::flat_hash_set<std::string> used, statistics;
    for (const auto& node : graph_.node()) {
      used.insert(node.input().begin(), node.input().end());
      if (node.op_type() == "BatchNormalization") statistics.insert(node.input().begin(), node.input().end());
    }
    std::vector<std::string> tables, buffers;
    for (const auto& proto : graph_.initializer()) {
      if (!IsFloat(proto) || !used.contains(proto.name())) continue;
      if (statistics.contains(proto.name())) continue;
      auto it = by_name_.find(proto.name());
      if (it == by_name_.end() || !signature_.at(it->second).persistent) {
        if (proto.dims_size() > 0) tables.push_back(proto.name());
      } else if (!signature_.at(it->second).learns) {
        buffers.push_back(proto.name());
      }
    }
    for (const std::string& name : tables) {
      ASSIGN_OR_RETURN(const bool tied, TieTranspose(name));
      if (!tied && editor_.Find(name)) RETURN_IF_ERROR(editor_.MakeConstant(name, /*kept=*/false));
    }
    for (const std::string& name : buffers) {
      if (!editor_.Find(name)) continue;
      RETURN_IF_ERROR(editor_.MakeConstant(name, /*kept=*/true));
      result_.buffers.insert(name);
    }
    return absl::OkStatus();
  }

  // Where the exporter multiplied a BatchNormalization into the product in front of it, whose weight's name no
  // longer stands for what the module has: the call of that Conv or Gemm is that of the BatchNormalization.
  std::vector<std::string> FoldedInto() const {
    std::vector<std::string> weights;
    for (const auto& node : graph_.node()) {
      const bool product = node.op_type() == "Conv" || node.op_type() == "Gemm";
      if (!product || node.input_size() < 2 || !absl::StrContains(CallOf(node).target, "batch_norm"))
        continue;
      weights.push_back(node.input(1));
    }
    return weights;
  }

  void NoteMissing() {
    std::vector<std::string> folded, unused;
    for (const std::string& name : Missing()) {
      (mentioned_.contains(by_name_.at(name)) ? folded : unused).push_back(name);
    }
    const std::vector<std::string> weights = FoldedInto();
    if (!weights.empty()) {
      result_.notes.push_back(absl::StrCat(
          weights.size(),
          " BatchNormalization(s) are folded into the products before them: the values under ",
          FirstNames(weights), " are the folded ones, not the module's, and ", folded.size(),
          " parameter(s) are gone: ", FirstNames(folded),
          "; to train the module, export it with torch.onnx.export(dynamo=True, optimize=False)"));
    } else if (!folded.empty()) {
      result_.notes.push_back(absl::StrCat(
          folded.size(), " parameter(s) of the module are not in the model, the exporter folded them: ",
          FirstNames(folded), "; torch.onnx.export(dynamo=True, optimize=False) keeps them"));
    }
    if (!unused.empty()) {
      result_.notes.push_back(absl::StrCat(unused.size(),
                                           " parameter(s) of the module are not in the model, no call in it "
                                           "mentions them: ",
                                           FirstNames(unused)));
    }
  }

  onnx::GraphProto& graph_;
  const FxSignature signature_;
  absl::flat_hash_map<std::string, std::string> by_name_;  // the state_dict's name -> that of calls
  ParameterEditor& editor_;
  PyTorchParameters& result_;
  absl::flat_hash_set<std::string> mentioned_;               // by calls
  absl::flat_hash_map<std::string, size_t> next_recurrent_;  // call -> next entry of its list of parameters
};

}  // namespace

absl::Status RestoreFromMetadata(onnx::GraphProto& graph, const std::string& signature,
                                 ParameterEditor& editor, PyTorchParameters& result) {
  return FxNames(graph, signature, editor, result).Restore();
}

}  // namespace pipec
