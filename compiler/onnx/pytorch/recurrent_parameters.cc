#include "compiler/onnx/pytorch/recurrent_parameters.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

// Which of PyTorch's gates ONNX has at each place.
std::vector<int> GatesInOnnx(const onnx::NodeProto& node) {
  if (node.op_type() == "LSTM") return {0, 3, 1, 2};
  if (node.op_type() == "GRU") return {1, 0, 2};
  return {0};
}

// An operand that is to be made of parameters: `pieces` of each direction lie behind each other in its
// contents.
class Operand {
 public:
  Operand(ParameterEditor& editor, const std::string& name, std::vector<int> gates)
      : editor_(editor), name_(name), gates_(std::move(gates)) {
    const onnx::TensorProto& proto = *editor.Find(name);
    dims_.assign(proto.dims().begin(), proto.dims().end());
    data_type_ = proto.data_type();
  }

  // `pieces` by direction: names of parameters.
  absl::Status MakeOf(const std::vector<std::vector<std::string>>& pieces) {
    ASSIGN_OR_RETURN(const std::string bytes, editor_.Contents(name_));
    const int64_t count = static_cast<int64_t>(pieces.size() * pieces[0].size());
    const size_t piece_bytes = bytes.size() / count;
    std::vector<int64_t> piece_dims(dims_.begin() + 1, dims_.end());
    piece_dims[0] /= static_cast<int64_t>(pieces[0].size());
    std::vector<std::string> reordered;
    for (const auto& direction : pieces) {
      for (const std::string& parameter : direction) {
        const size_t k = reordered.size();
        if (!editor_.Find(parameter)) {
          editor_.Add(parameter, data_type_, piece_dims,
                      InPyTorchOrder(bytes.substr(k * piece_bytes, piece_bytes)));
        }
        reordered.push_back(InOnnxOrder(parameter, piece_dims[0]));
      }
    }
    const std::string joined = reordered.size() == 1 ? reordered[0] : absl::StrCat(name_, "/joined");
    if (reordered.size() > 1) {
      onnx::NodeProto& concat = editor_.AddNode("Concat", joined);
      for (const std::string& piece : reordered) concat.add_input(piece);
      auto& axis = *concat.add_attribute();
      axis.set_name("axis");
      axis.set_type(onnx::AttributeProto::INT);
      axis.set_i(0);
    }
    onnx::NodeProto& reshape = editor_.AddNode("Reshape", absl::StrCat(name_, "/operand"));
    reshape.add_input(joined);
    reshape.add_input(Integers(absl::StrCat(name_, "/shape"), dims_));
    return absl::OkStatus();
  }

 private:
  std::string InPyTorchOrder(const std::string& bytes) const {
    const size_t gate_bytes = bytes.size() / gates_.size();
    std::string result(bytes.size(), '\0');
    for (size_t k = 0; k < gates_.size(); ++k) {
      std::copy_n(bytes.begin() + k * gate_bytes, gate_bytes, result.begin() + gates_[k] * gate_bytes);
    }
    return result;
  }

  // The name of a value that holds the parameter's rows in ONNX's order of the gates.
  std::string InOnnxOrder(const std::string& parameter, int64_t rows) {
    if (gates_.size() == 1) return parameter;
    const std::string value = absl::StrCat(parameter, "/gates");
    if (editor_.HasValue(value)) return value;
    const int64_t hidden = rows / static_cast<int64_t>(gates_.size());
    std::vector<int64_t> order;
    for (int gate : gates_) {
      for (int64_t i = 0; i < hidden; ++i) order.push_back(gate * hidden + i);
    }
    onnx::NodeProto& gather = editor_.AddNode("Gather", value);
    gather.add_input(parameter);
    gather.add_input(Integers(absl::StrCat(parameter, "/order"), order));
    return value;
  }

  std::string Integers(const std::string& name, const std::vector<int64_t>& values) {
    editor_.Add(name, onnx::TensorProto::INT64, {static_cast<int64_t>(values.size())},
                std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int64_t)));
    return name;
  }

  ParameterEditor& editor_;
  const std::string name_;
  const std::vector<int> gates_;
  std::vector<int64_t> dims_;
  int data_type_ = 0;
};

}  // namespace

bool IsRecurrent(const onnx::NodeProto& node) {
  return node.op_type() == "LSTM" || node.op_type() == "GRU" || node.op_type() == "RNN";
}

int Directions(const onnx::NodeProto& node) {
  for (const auto& attribute : node.attribute()) {
    if (attribute.name() == "direction") return attribute.s() == "bidirectional" ? 2 : 1;
  }
  return 1;
}

std::vector<RecurrentNames> NamesOfLayer(const std::string& module, int layer, int directions, bool biases) {
  std::vector<RecurrentNames> names;
  for (int k = 0; k < directions; ++k) {
    const std::string suffix = absl::StrCat("_l", layer, k == 1 ? "_reverse" : "");
    auto name = [&](const char* leaf) {
      return absl::StrCat(module, module.empty() ? "" : ".", leaf, suffix);
    };
    names.push_back(
        {name("weight_ih"), name("weight_hh"), biases ? name("bias_ih") : "", biases ? name("bias_hh") : ""});
  }
  return names;
}

absl::StatusOr<bool> UseRecurrent(ParameterEditor& editor, onnx::NodeProto& node,
                                  const std::vector<RecurrentNames>& directions) {
  const std::vector<int> gates = GatesInOnnx(node);
  if (node.input_size() < 3) return false;
  const bool biases = node.input_size() > 3 && !node.input(3).empty();
  for (int k = 1; k < (biases ? 4 : 3); ++k) {
    // Of a layer that runs twice the second node has the same operands.
    if (editor.HasValue(absl::StrCat(node.input(k), "/operand"))) continue;
    const onnx::TensorProto* operand = editor.Find(node.input(k));
    const int64_t parts = static_cast<int64_t>(gates.size()) * (k == 3 ? 2 : 1);
    if (!operand || operand->dims_size() != (k == 3 ? 2 : 3) ||
        operand->dims(0) != static_cast<int64_t>(directions.size()) || operand->dims(1) % parts != 0 ||
        operand->dims(1) == 0 || biases != !directions[0].bias_ih.empty()) {
      return false;
    }
  }
  for (int k = 1; k < (biases ? 4 : 3); ++k) {
    const std::string name = node.input(k);
    if (!editor.HasValue(absl::StrCat(name, "/operand"))) {
      std::vector<std::vector<std::string>> pieces;
      for (const RecurrentNames& direction : directions) {
        if (k == 1) pieces.push_back({direction.weight_ih});
        if (k == 2) pieces.push_back({direction.weight_hh});
        if (k == 3) pieces.push_back({direction.bias_ih, direction.bias_hh});
      }
      RETURN_IF_ERROR(Operand(editor, name, gates).MakeOf(pieces));
      editor.Drop(name);
    }
    node.set_input(k, absl::StrCat(name, "/operand"));
  }
  return true;
}

}  // namespace pipec
