// Models as PyTorch's exporters write them, made by hand: one property each.
#include <gmock/gmock.h>

#include "compiler/onnx/pytorch/parameter_editor.h"
#include "compiler/onnx/pytorch/pytorch_parameters.h"
#include "compiler/onnx/read/tensor_data.h"
#include "tests/unit/onnx/model_file.h"

namespace pipec {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

// A model made by hand.
struct Small {
  Small() {
    model.set_producer_name("pytorch");
    model.set_ir_version(10);
    model.add_opset_import()->set_version(21);
    model.mutable_graph()->set_name("g");
  }

  void Initializer(const std::string& name, std::vector<int64_t> dims, float first = 1) {
    onnx::TensorProto& proto = *model.mutable_graph()->add_initializer();
    proto.set_name(name);
    proto.set_data_type(onnx::TensorProto::FLOAT);
    proto.mutable_dims()->Assign(dims.begin(), dims.end());
    int64_t elements = 1;
    for (int64_t dim : dims) elements *= dim;
    std::vector<float> values(elements);
    for (float& value : values) value = first++;
    proto.set_raw_data(values.data(), values.size() * sizeof(float));
  }

  onnx::NodeProto& Node(const std::string& op, const std::string& name, std::vector<std::string> operands,
                        const std::string& result, const std::string& call = "") {
    onnx::NodeProto& node = *model.mutable_graph()->add_node();
    node.set_op_type(op);
    node.set_name(name);
    for (const std::string& operand : operands) node.add_input(operand);
    node.add_output(result);
    if (!call.empty()) {
      auto& entry = *node.add_metadata_props();
      entry.set_key("pkg.torch.onnx.fx_node");
      entry.set_value(call);
    }
    return node;
  }

  void Signature(const std::string& text) {
    auto& entry = *model.mutable_graph()->add_metadata_props();
    entry.set_key("pkg.torch.export.ExportedProgram.graph_signature");
    entry.set_value(text);
  }

  void InputAndOutput(const std::string& input, const std::string& output) {
    for (auto [info, name] : {std::pair(model.mutable_graph()->add_input(), input),
                              std::pair(model.mutable_graph()->add_output(), output)}) {
      info->set_name(name);
      auto& type = *info->mutable_type()->mutable_tensor_type();
      type.set_elem_type(onnx::TensorProto::FLOAT);
      for (int64_t dim : {2, 4}) type.mutable_shape()->add_dim()->set_dim_value(dim);
    }
  }

  PyTorchParameters Restore() {
    ExternalDataResolver external("", false, false);
    absl::StatusOr<PyTorchParameters> parameters = RestorePyTorchParameters(model, external);
    EXPECT_TRUE(parameters.ok()) << parameters.status();
    return *std::move(parameters);
  }

  // "w[4,12]".
  std::vector<std::string> Initializers() const {
    std::vector<std::string> names;
    for (const auto& proto : model.graph().initializer())
      names.push_back(proto.name() + ToString(TypeOf(proto)->shape));
    return names;
  }

  std::unique_ptr<Module> Imported(bool infers = false) {
    auto module = ImportModel(WriteFile("model.onnx", model.SerializeAsString()), {.infers = infers});
    EXPECT_TRUE(module.ok()) << module.status();
    return module.ok() ? *std::move(module) : std::make_unique<Module>();
  }

  onnx::ModelProto model;
};

// h @ embedding.weight.t(): the exporter folds the transpose, and the weight stays for other uses.
TEST(PyTorchParameters, AFoldedTransposeOfAWeightIsThatWeight) {
  for (const float first : {1.0f, 2.0f}) {
    Small small;
    small.Signature("p_e_weight: PARAMETER target='e.weight'\n");
    small.Initializer("e.weight", {3, 4});
    // Its transpose, or other numbers.
    small.Initializer("t", {4, 3});
    const std::vector<float> transposed = {first, 5, 9, 2, 6, 10, 3, 7, 11, 4, 8, 12};
    small.model.mutable_graph()->mutable_initializer(1)->set_raw_data(transposed.data(), 12 * sizeof(float));
    small.InputAndOutput("x", "y");
    small.Node("MatMul", "node_MatMul_0", {"x", "t"}, "h");
    small.Node("MatMul", "node_MatMul_1", {"h", "e.weight"}, "y");
    const auto module = small.Imported();
    const Value* other = module->graph.FindValue("h")->producer()->input(1);
    if (first == 1) {
      ASSERT_TRUE(other->producer()) << other->name();
      EXPECT_TRUE(other->producer()->Is("Transpose"));
      EXPECT_EQ(other->producer()->input(0)->name(), "e.weight");
    } else {
      EXPECT_EQ(other->kind(), ValueKind::kConstant);
    }
  }
}

// Hugging Face's Conv1D multiplies by [in,out].
TEST(PyTorchParameters, ZeroBiasIsAsLongAsTheProductHasColumns) {
  for (const bool transposed : {false, true}) {
    Small small;
    small.Signature("p_a_weight: PARAMETER target='a.weight'\np_a_bias: PARAMETER target='a.bias'\n");
    small.Initializer("a.weight", transposed ? std::vector<int64_t>{12, 4} : std::vector<int64_t>{4, 12});
    const std::string call = transposed
                                 ? "aten.linear.default](args = (%x, %p_a_weight, %p_a_bias), kwargs = {})"
                                 : "aten.addmm.default](args = (%p_a_bias, %x, %p_a_weight), kwargs = {})";
    onnx::NodeProto& node = small.Node("Gemm", "node_Gemm_0", {"x", "a.weight"}, "y",
                                       "%y : [num_users=1] = call_function[target=torch.ops." + call);
    auto& attribute = *node.add_attribute();
    attribute.set_name("transB");
    attribute.set_type(onnx::AttributeProto::INT);
    attribute.set_i(transposed);
    small.Restore();
    EXPECT_THAT(small.Initializers(),
                UnorderedElementsAre(transposed ? "a.weight[12,4]" : "a.weight[4,12]", "a.bias[12]"));
    EXPECT_THAT(small.model.graph().node(small.model.graph().node_size() - 1).input(),
                ElementsAre("x", "a.weight", "a.bias"));
  }
}

// The product of a MultiheadAttention that gives queries, keys and values, and the same in three.
TEST(PyTorchParameters, ProjectionsOfAttention) {
  Small fused;
  fused.Initializer("t.attn.in_proj_bias", {12});
  fused.Initializer("onnx::MatMul_3", {4, 12});
  fused.Node("MatMul", "/t/attn/MatMul", {"x", "onnx::MatMul_3"}, "m");
  fused.Node("Add", "/t/attn/Add", {"t.attn.in_proj_bias", "m"}, "a");
  fused.Node("Softmax", "/t/attn/Softmax", {"a"}, "y");
  EXPECT_THAT(fused.Restore().notes, IsEmpty());
  EXPECT_THAT(fused.Initializers(),
              UnorderedElementsAre("t.attn.in_proj_bias[12]", "t.attn.in_proj_weight[12,4]"));

  Small apart;
  for (int k = 0; k < 3; ++k) {
    const std::string n = std::to_string(k);
    apart.Initializer("onnx::MatMul_" + n, {4, 4}, static_cast<float>(k));
    apart.Initializer("onnx::Add_" + n, {4}, static_cast<float>(k));
    apart.Node("MatMul", "/attn/MatMul_" + n, {"x", "onnx::MatMul_" + n}, "m" + n);
    apart.Node("Add", "/attn/Add_" + n, {"onnx::Add_" + n, "m" + n}, "a" + n);
  }
  const std::vector<std::string> before = apart.Initializers();
  EXPECT_THAT(apart.Restore().notes, ElementsAre(HasSubstr("6 parameter(s) have no name of PyTorch's")));
  EXPECT_EQ(apart.Initializers(), before);
}

// A name that another weight has already is not given to this one.
TEST(ParameterEditor, OperandsWithOtherContentsStay) {
  Small small;
  small.Initializer("fc.weight", {4, 4});
  small.Initializer("same", {4, 4});
  small.Initializer("other", {4, 4}, 2);
  onnx::NodeProto& node = small.Node("MatMul", "", {"same", "other"}, "y");
  ExternalDataResolver external("", false, false);
  ParameterEditor editor(*small.model.mutable_graph(), external);
  EXPECT_TRUE(*editor.Use(node, 0, "fc.weight", false));
  EXPECT_FALSE(*editor.Use(node, 1, "fc.weight", false));
  EXPECT_FALSE(*editor.Use(node, 1, "fc.weight", true));
  EXPECT_THAT(node.input(), ElementsAre("fc.weight", "other"));
}

ValueKind KindOf(const Module& module, const std::string& name) {
  const Value* value = module.graph.FindValue(name);
  return value ? value->kind() : ValueKind::kResult;
}

TEST(PyTorchParameters, ScalarsThatAModuleLearns) {
  Small torchscript;
  for (const char* name : {"g", "block.scale", "onnx::Mul_7", "/Constant_output_0", "12"})
    torchscript.Initializer(name, {});
  torchscript.InputAndOutput("x", "y");
  torchscript.Node("Mul", "/Mul", {"x", "g"}, "a");
  torchscript.Node("Mul", "/block/Mul", {"a", "block.scale"}, "b");
  torchscript.Node("Mul", "/Mul_1", {"b", "onnx::Mul_7"}, "c");
  torchscript.Node("Mul", "/Mul_2", {"c", "/Constant_output_0"}, "d");
  torchscript.Node("Mul", "/Mul_3", {"d", "12"}, "y");
  auto module = torchscript.Imported();
  EXPECT_EQ(KindOf(*module, "g"), ValueKind::kParameter);
  EXPECT_EQ(KindOf(*module, "block.scale"), ValueKind::kParameter);
  for (const char* name : {"onnx::Mul_7", "/Constant_output_0", "12"})
    EXPECT_EQ(KindOf(*module, name), ValueKind::kConstant) << name;
  EXPECT_THAT(module->notes, IsEmpty());

  torchscript.model.set_producer_name("another");
  module = torchscript.Imported();
  EXPECT_EQ(KindOf(*module, "g"), ValueKind::kConstant);
  EXPECT_THAT(module->notes, ElementsAre(HasSubstr("5 float initializer(s) of shape []")));
}

// What the module has as a buffer is no parameter, but comes back under its name.
TEST(PyTorchParameters, ScalarsOfTheSignature) {
  Small small;
  small.Signature(
      "p_g: PARAMETER target='g'\np_h: PARAMETER target='h'\nb_s: BUFFER target='s' persistent=True\n");
  for (const char* name : {"g", "s", "val_9"}) small.Initializer(name, {});
  small.InputAndOutput("x", "y");
  small.Node("Mul", "node_Mul_0", {"x", "g"}, "a");
  small.Node("Mul", "node_Mul_1", {"a", "s"}, "b");
  small.Node("Mul", "node_Mul_2", {"b", "val_9"}, "c");
  // Two of the same value were merged.
  small.Node("Mul", "node_Mul_3", {"c", "g"}, "y",
             "%mul_3 : [num_users=1] = call_function[target=torch.ops.aten.mul.Tensor](args = (%c, %p_h), "
             "kwargs = {})");
  auto module = small.Imported();
  EXPECT_EQ(KindOf(*module, "g"), ValueKind::kParameter);
  EXPECT_EQ(KindOf(*module, "h"), ValueKind::kParameter);
  EXPECT_EQ(module->graph.FindValue("g")->uses().size(), 1);
  EXPECT_EQ(module->graph.FindValue("h")->uses().size(), 1);
  EXPECT_EQ(KindOf(*module, "s"), ValueKind::kParameter);
  EXPECT_TRUE(module->graph.FindValue("s")->uses().empty());
  EXPECT_EQ(KindOf(*module, "val_9"), ValueKind::kConstant);
  EXPECT_THAT(module->notes, IsEmpty());
}

// What only the state_dict has is not reported as unused; a parameter of the module that nothing reads is.
TEST(PyTorchParameters, NotesNameWhatTheModelLacks) {
  Small small;
  small.Signature(
      "p_w: PARAMETER target='w'\np_idle: PARAMETER target='idle.weight'\np_gone: PARAMETER "
      "target='gone.bias'"
      "\nb_m: BUFFER target='m' persistent=True\n"
      "b_n: BUFFER target='bn.num_batches_tracked' persistent=True\n");
  small.Initializer("w", {4});
  small.Initializer("idle.weight", {4}, 5);
  small.Initializer("m", {4}, 9);
  small.InputAndOutput("x", "y");
  small.Node("Mul", "node_Mul_0", {"x", "w"}, "a");
  small.Node("Mul", "node_Mul_1", {"a", "m"}, "y");
  const Small copy = small;
  EXPECT_THAT(small.Imported()->notes,
              UnorderedElementsAre(
                  AllOf(HasSubstr("no call in it mentions them: gone.bias"), Not(HasSubstr("optimize"))),
                  HasSubstr("1 parameter(s) that no output depends on: idle.weight")));
  EXPECT_THAT(Small(copy).Imported(/*infers=*/true)->notes, ElementsAre(HasSubstr("idle.weight")));
}

}  // namespace
}  // namespace pipec
