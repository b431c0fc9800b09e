#include "tests/conformance/closed_model.h"

#include <algorithm>

#include "absl/strings/string_view.h"
#include "runtime/base/tiny_types.h"

namespace pipec {
namespace {

struct Operand {
  absl::string_view op;
  int index;
};

// Not learnt in PyTorch, or sizes that a float says.
constexpr Operand kConstants[] = {
    {"BatchNormalization", 3},
    {"BatchNormalization", 4},
    {"SoftmaxCrossEntropyLoss", 2},
    {"NegativeLogLikelihoodLoss", 2},
    {"RoiAlign", 1},
    {"MaxRoiPool", 1},
    {"Resize", 1},
    {"Resize", 2},
    {"Upsample", 1},
    {"Dropout", 1},
    {"OneHot", 0},
    {"OneHot", 1},
    {"Range", 0},
    {"Range", 1},
    {"Range", 2},
};

bool IsConstant(const std::string& name, const onnx::GraphProto& graph) {
  return std::any_of(graph.node().begin(), graph.node().end(), [&](const onnx::NodeProto& node) {
    return std::any_of(std::begin(kConstants), std::end(kConstants), [&](const Operand& operand) {
      return node.op_type() == operand.op && operand.index < node.input_size() &&
             node.input(operand.index) == name;
    });
  });
}

onnx::TensorProto ToProto(const std::string& name, const Tensor& tensor) {
  onnx::TensorProto proto;
  proto.set_name(name);
  proto.set_data_type(static_cast<int>(tensor.type.dtype));
  for (int64_t dim : tensor.type.shape) proto.add_dims(dim);
  const DType dtype = tensor.type.dtype;
  proto.set_raw_data(BitsInFile(dtype) < 8 ? PackElements(dtype, *tensor.data.bytes) : *tensor.data.bytes);
  return proto;
}

onnx::NodeProto ConstantNode(const std::string& name, onnx::TensorProto value) {
  onnx::NodeProto node;
  node.set_op_type("Constant");
  node.add_output(name);
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name("value");
  attribute.set_type(onnx::AttributeProto::TENSOR);
  *attribute.mutable_t() = std::move(value);
  return node;
}

}  // namespace

absl::StatusOr<onnx::ModelProto> ClosedModel(const onnx::ModelProto& model, const SuiteData& data) {
  for (const auto& input : model.graph().input()) {
    if (!input.type().has_tensor_type()) return absl::CancelledError("an input that is no tensor");
  }
  onnx::ModelProto made = model;
  made.set_ir_version(std::max<int64_t>(made.ir_version(), 4));
  const auto& opsets = made.opset_import();
  const bool has_onnx = std::any_of(opsets.begin(), opsets.end(), [](const auto& opset) {
    return opset.domain().empty() || opset.domain() == "ai.onnx";
  });
  if (!has_onnx) made.add_opset_import()->set_version(21);
  onnx::GraphProto& graph = *made.mutable_graph();
  graph.clear_input();
  std::vector<onnx::NodeProto> nodes;
  bool any = false;
  for (const auto& [name, tensor] : data.inputs) {
    onnx::TensorProto proto = ToProto(name, tensor);
    if (!IsFloat(tensor.type.dtype) || IsConstant(name, graph)) {
      nodes.push_back(ConstantNode(name, std::move(proto)));
      continue;
    }
    any |= tensor.type.elements() > 0;
    if (tensor.type.shape.empty()) {
      // A scalar would be taken for a constant: a vector, seen as a scalar.
      proto.set_name(name + "/one");
      proto.add_dims(1);
      onnx::NodeProto& node = nodes.emplace_back();
      node.set_op_type("Squeeze");
      node.add_input(name + "/one");
      node.add_output(name);
    }
    *graph.add_initializer() = std::move(proto);
  }
  const auto given = std::move(*graph.mutable_initializer());
  graph.clear_initializer();
  for (const onnx::TensorProto& initializer : given) {
    if (IsConstant(initializer.name(), graph)) {
      nodes.push_back(ConstantNode(initializer.name(), initializer));
    } else {
      *graph.add_initializer() = initializer;
    }
  }
  for (onnx::NodeProto& node : *graph.mutable_node()) nodes.push_back(std::move(node));
  graph.clear_node();
  for (onnx::NodeProto& node : nodes) *graph.add_node() = std::move(node);
  if (!any) return absl::CancelledError("no float input");
  return made;
}

}  // namespace pipec
