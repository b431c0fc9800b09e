// Forms that exporters write and that broke importers elsewhere: each is legal, or clearly meant, or refused
// by name.
#include <gmock/gmock.h>
#include <onnx/onnx_pb.h>

#include <cstring>

#include "compiler/ir/print.h"
#include "passes/evaluate.h"
#include "tests/unit/onnx/model_file.h"

namespace pipec {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string Refusal(const std::string& text, ImportOptions options = {.evaluate = Evaluate}) {
  auto module = TryImport(text, std::move(options));
  return module.ok() ? "accepted" : std::string(module.status().message());
}

std::unique_ptr<Module> ImportFolding(const std::string& graph, int opset = 21) {
  return Import(Text(graph, opset), {.evaluate = Evaluate});
}

template <typename T>
std::vector<T> Contents(const Value* value) {
  std::vector<T> elements(value->type.elements());
  EXPECT_NE(value->data.bytes, nullptr) << value->name();
  if (value->data.bytes) std::memcpy(elements.data(), value->data.bytes->data(), elements.size() * sizeof(T));
  return elements;
}

template <typename T>
std::vector<T> Constant(const Module& module, int output = 0) {
  EXPECT_EQ(module.graph.outputs[output]->kind(), ValueKind::kConstant) << Print(module);
  return Contents<T>(module.graph.outputs[output]);
}

// A model built by hand, for what ONNX text cannot say.
struct Built {
  onnx::ModelProto model;
  onnx::GraphProto& graph;

  explicit Built(int ir_version = 10) : graph(*model.mutable_graph()) {
    model.set_ir_version(ir_version);
    auto* opset = model.add_opset_import();
    opset->set_version(21);
    graph.set_name("g");
    AddInfo(*graph.add_input(), "x");
    AddInfo(*graph.add_output(), "y");
  }
  static void AddInfo(onnx::ValueInfoProto& info, const std::string& name) {
    info.set_name(name);
    auto* tensor = info.mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(onnx::TensorProto::FLOAT);
    tensor->mutable_shape()->add_dim()->set_dim_value(2);
  }
  onnx::NodeProto& Node(const std::string& op, std::vector<std::string> inputs, const std::string& output) {
    auto& node = *graph.add_node();
    node.set_op_type(op);
    for (const std::string& input : inputs) node.add_input(input);
    node.add_output(output);
    return node;
  }
  absl::StatusOr<std::unique_ptr<Module>> Import(ImportOptions options = {.evaluate = Evaluate}) const {
    return ImportModel(WriteFile("built.onnx", model.SerializeAsString()), options);
  }
  std::string Refusal(ImportOptions options = {.evaluate = Evaluate}) const {
    auto module = Import(std::move(options));
    return module.ok() ? "accepted" : std::string(module.status().message());
  }
};

// y = x + w, with w an input as well.
Built WithDefault(int ir_version) {
  Built built(ir_version);
  Built::AddInfo(*built.graph.add_input(), "w");
  auto& w = *built.graph.add_initializer();
  w.set_name("w");
  w.set_data_type(onnx::TensorProto::FLOAT);
  w.add_dims(2);
  w.add_float_data(1);
  w.add_float_data(2);
  built.Node("Add", {"x", "w"}, "y");
  return built;
}

TEST(OddForms, InitializersThatAreAlsoInputs) {
  for (int ir : {3, 4, 10}) {
    auto module = WithDefault(ir).Import();
    ASSERT_TRUE(module.ok()) << module.status();
    EXPECT_EQ((*module)->graph.inputs().size(), 1);
    EXPECT_EQ((*module)->graph.FindValue("w")->kind(), ValueKind::kParameter);
  }
  const ImportOptions options{.bound_inputs = {{"w", "ones"}}};
  auto module = WithDefault(4).Import(options);
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_EQ(Contents<float>((*module)->graph.FindValue("w")), (std::vector<float>{1, 1}));
  EXPECT_THAT(WithDefault(3).Refusal(options),
              AllOf(HasSubstr("--input w"), HasSubstr("before IR version 4")));
  Built wrong = WithDefault(10);
  wrong.graph.mutable_input(1)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(0)
      ->set_dim_value(3);
  EXPECT_THAT(wrong.Refusal(), AllOf(HasSubstr("initializer 'w'"), HasSubstr("declared with shape [3]")));
}

TEST(OddForms, DomainsAndOpsetImports) {
  Import(
      "<ir_version: 10, opset_import: [\"ai.onnx\" : 21]>\ng (float[2] x) => (float[2] y) { y = Relu(x) }");
  Import(
      "<ir_version: 10, opset_import: [\"\" : 21]>\ng (float[2] x) => (float[2] y) { y = ai.onnx.Relu(x) }");
  Built none;
  none.model.clear_opset_import();
  none.Node("Relu", {"x"}, "y");
  EXPECT_THAT(none.Refusal(), HasSubstr("no opset imports"));
  none.model.set_ir_version(2);
  EXPECT_EQ(none.Refusal(), "accepted");
  EXPECT_THAT(
      Refusal("<ir_version: 10, opset_import: [\"ai.onnx.ml\" : 3]>\ng (float[2] x) => (y) { y = Relu(x) }"),
      HasSubstr("domain 'ai.onnx' is not among the opset imports"));
}

TEST(OddForms, FunctionsWithOverloadsAndWithoutOpsets) {
  Built built;
  for (const char* overload : {"", "other"}) {
    auto& function = *built.model.add_functions();
    function.set_name("F");
    function.set_domain("mine");
    function.set_overload(overload);
    function.add_input("v");
    function.add_output("w");
    auto& node = *function.add_node();
    node.set_op_type(*overload ? "Neg" : "Relu");
    node.add_input("v");
    node.add_output("w");
  }
  for (const char* overload : {"", "other"}) {
    auto& call = built.Node("F", {"x"}, *overload ? "y" : "z");
    call.set_domain("mine");
    call.set_overload(overload);
  }
  auto module = built.Import();
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_EQ((*module)->graph.outputs[0]->producer()->op(), "Neg");
  EXPECT_EQ((*module)->graph.FindValue("z")->producer()->op(), "Relu");
  built.model.mutable_functions(1)->set_overload("");
  EXPECT_THAT(built.Refusal(), HasSubstr("two functions mine::F"));
}

TEST(OddForms, AttributeReferencesInsideTheSubgraphsOfAFunction) {
  auto module = Import(
      "<ir_version: 10, opset_import: [\"\" : 21, \"mine\" : 1]>\n"
      "g (float[2,3] x) => (float[2,3] y) { y = mine.Twice<k = 0>(x) }\n"
      "<opset_import: [\"\" : 21], domain: \"mine\">\n"
      "Twice<k> (v) => (w) { m = Constant<value_int = 2>() w = Loop(m, , v) <body = step (int64 i, bool c, "
      "s) => (c, t) { t = "
      "Softmax<axis: int = @k>(s) }> }",
      {.evaluate = Evaluate});
  ASSERT_EQ(module->graph.num_nodes(), 2) << Print(*module);
  EXPECT_EQ(module->graph.last_node()->attributes.Int("axis", -1), 0);
}

TEST(OddForms, AbsentOperandsInTheMiddleAndEmptyTensorsForThem) {
  const std::string resize = R"(g (float[1,1,2,2] x) => (float[1,1,4,4] y)
      <float[0] roi = {}, float[0] scales = {}, int64[4] sizes = {1, 1, 4, 4}> { y = Resize()";
  for (const char* operands : {"x, roi, scales, sizes", "x, , , sizes", "x, roi, , sizes"}) {
    auto module = ImportFolding(resize + operands + ") }");
    const Node* node = module->graph.last_node();
    ASSERT_EQ(node->op(), "Resize") << Print(*module);
    EXPECT_EQ(node->input(1), nullptr);
    EXPECT_EQ(node->input(2), nullptr);
    EXPECT_EQ(node->input(3)->name(), "sizes");
  }
}

TEST(OddForms, SixteenBitFloatsInInt32Data) {
  const auto import = [](int type, int32_t bits) {
    Built built;
    auto& w = *built.graph.add_initializer();
    w.set_name("w");
    w.set_data_type(type);
    w.add_dims(1);
    w.add_int32_data(bits);
    built.Node("Relu", {"x"}, "y");
    return built.Import();
  };
  for (int type : {onnx::TensorProto::FLOAT16, onnx::TensorProto::BFLOAT16}) {
    auto module = import(type, 0xC000);
    ASSERT_TRUE(module.ok()) << module.status();
    EXPECT_EQ(Contents<uint16_t>((*module)->graph.FindValue("w")), (std::vector<uint16_t>{0xC000}));
  }
  EXPECT_THAT(std::string(import(onnx::TensorProto::BFLOAT16, 0x1C000).status().message()),
              HasSubstr("initializer 'w'"));
  EXPECT_THAT(std::string(import(onnx::TensorProto::FLOAT16, -1).status().message()),
              HasSubstr("does not fit"));
  EXPECT_THAT(std::string(import(onnx::TensorProto::INT8, 200).status().message()),
              HasSubstr("does not fit"));
  EXPECT_TRUE(import(onnx::TensorProto::INT8, -128).ok());
  EXPECT_THAT(std::string(import(onnx::TensorProto::COMPLEX64, 1).status().message()),
              HasSubstr("COMPLEX64"));
}

TEST(OddForms, ConstantsOfEveryKind) {
  auto module = ImportFolding(R"(g () => (float a, float[2] b, int64 c, int64[3] d, float[2] e) {
      a = Constant<value_float = 1.5>()
      b = Constant<value_floats = [1.5, -2.0]>()
      c = Constant<value_int = -7>()
      d = Constant<value_ints = [1, 2, 3]>()
      e = Constant<value = float[2] {3, 4}>()
    })");
  EXPECT_THAT(Constant<float>(*module, 0), ElementsAre(1.5f));
  EXPECT_THAT(Constant<float>(*module, 1), ElementsAre(1.5f, -2.0f));
  EXPECT_THAT(Constant<int64_t>(*module, 2), ElementsAre(-7));
  EXPECT_THAT(Constant<int64_t>(*module, 3), ElementsAre(1, 2, 3));
  EXPECT_THAT(Constant<float>(*module, 4), ElementsAre(3, 4));
  EXPECT_THAT(Refusal(Text("g () => (y) { [words] y = Constant<value_string = \"a\">() }")),
              AllOf(HasSubstr("node 'words' (Constant)"), HasSubstr("value_string")));
  EXPECT_THAT(Refusal(Text("g () => (y) { [words] y = Constant<value_strings = [\"a\", \"b\"]>() }")),
              HasSubstr("value_strings"));
}

onnx::SparseTensorProto Sparse(std::vector<int64_t> indices, std::vector<int64_t> index_dims) {
  onnx::SparseTensorProto sparse;
  sparse.mutable_values()->set_name("w");
  sparse.mutable_values()->set_data_type(onnx::TensorProto::FLOAT);
  sparse.mutable_values()->add_dims(2);
  sparse.mutable_values()->add_float_data(5);
  sparse.mutable_values()->add_float_data(6);
  sparse.mutable_indices()->set_data_type(onnx::TensorProto::INT64);
  for (int64_t dim : index_dims) sparse.mutable_indices()->add_dims(dim);
  for (int64_t index : indices) sparse.mutable_indices()->add_int64_data(index);
  sparse.add_dims(2);
  sparse.add_dims(3);
  return sparse;
}

TEST(OddForms, SparseInitializersAndConstantsBecomeDense) {
  const auto import = [](std::vector<int64_t> indices, std::vector<int64_t> dims) {
    Built built;
    *built.graph.add_sparse_initializer() = Sparse(std::move(indices), std::move(dims));
    built.Node("Relu", {"x"}, "y");
    return built.Import();
  };
  for (const auto& [indices, dims] : std::vector<std::pair<std::vector<int64_t>, std::vector<int64_t>>>{
           {{1, 5}, {2}}, {{0, 1, 1, 2}, {2, 2}}}) {
    auto module = import(indices, dims);
    ASSERT_TRUE(module.ok()) << module.status();
    EXPECT_THAT(Contents<float>((*module)->graph.FindValue("w")), ElementsAre(0, 5, 0, 0, 0, 6));
    EXPECT_EQ((*module)->graph.FindValue("w")->kind(), ValueKind::kConstant);
    EXPECT_THAT((*module)->notes, ElementsAre(AllOf(HasSubstr("sparse"), HasSubstr(": w"))));
  }
  const auto refusal = [&](std::vector<int64_t> indices, std::vector<int64_t> dims) {
    return std::string(import(std::move(indices), std::move(dims)).status().message());
  };
  EXPECT_THAT(refusal({5, 1}, {2}), AllOf(HasSubstr("initializer 'w'"), HasSubstr("do not rise: 1 after 5")));
  EXPECT_THAT(refusal({1, 1}, {2}), HasSubstr("do not rise"));
  EXPECT_THAT(refusal({1, 6}, {2}), HasSubstr("index 6, but 6 elements"));
  EXPECT_THAT(refusal({-1, 1}, {2}), HasSubstr("index -1"));
  EXPECT_THAT(refusal({0, 1, 0, 3}, {2, 2}), HasSubstr("index 3 on axis 1"));
  EXPECT_THAT(refusal({1, 2, 3}, {3}), HasSubstr("wanted int64[2] or int64[2,2]"));

  Built constant;
  auto& node = constant.Node("Constant", {}, "k");
  auto& attribute = *node.add_attribute();
  attribute.set_name("sparse_value");
  attribute.set_type(onnx::AttributeProto::SPARSE_TENSOR);
  *attribute.mutable_sparse_tensor() = Sparse({1, 5}, {2});
  constant.Node("Relu", {"x"}, "y");
  auto module = constant.Import();
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_THAT(Contents<float>((*module)->graph.FindValue("k")), ElementsAre(0, 5, 0, 0, 0, 6));

  Built huge;
  auto& sparse = *huge.graph.add_sparse_initializer();
  sparse = Sparse({1, 5}, {2});
  sparse.set_dims(0, int64_t{1} << 36);
  huge.Node("Relu", {"x"}, "y");
  EXPECT_THAT(huge.Refusal(), HasSubstr("too few to hold"));
}

TEST(OddForms, ReshapeWithZeroMinusOneAndAllowzero) {
  const auto type = [](const std::string& x, const std::string& shape, const std::string& attributes) {
    const size_t axes = 1 + std::count(shape.begin(), shape.end(), ',');
    auto module = ImportFolding("g (float" + x + " x) => (y) <int64[" + std::to_string(axes) + "] s = {" +
                                shape + "}> { y = Reshape" + attributes + "(x, s) }");
    return ToString(module->graph.outputs.at(0)->type);
  };
  EXPECT_EQ(type("[2,3,4]", "0, -1", ""), "float32[2,12]");
  EXPECT_EQ(type("[2,3,4]", "-1, 0", ""), "float32[8,3]");
  EXPECT_EQ(type("[0,3]", "3, 0", "<allowzero = 1>"), "float32[3,0]");
  EXPECT_EQ(type("[0,3]", "0, 3", ""), "float32[0,3]");
  EXPECT_THAT(Refusal(Text("g (float[2,3] x) => (y) <int64[2] s = {4, -1}> { y = Reshape(x, s) }")),
              HasSubstr("Reshape"));
}

TEST(OddForms, DimensionsOfZeroAndNegativeAxes) {
  auto module = ImportFolding(R"(g (float[0,3] x) => (float[0] y, float[3,0] z) <int64[1] last = {-1}> {
      y = ReduceSum<keepdims = 0>(x, last)
      z = Transpose(x)
    })");
  EXPECT_EQ(ToString(module->graph.outputs[0]->type), "float32[0]");
}

TEST(OddForms, ShapeArithmeticFolds) {
  // What TorchScript writes for x.view(x.size(0), -1, 2 * x.size(2) // 4).
  auto module = ImportFolding(
      R"(g (float[N,6,8] x) => (float[N,12,4] y) <int64 two = {2}, int64 four = {4}, int64[1] rest = {-1}> {
      s = Shape(x)
      i0 = Constant<value = int64 {0}>()
      i2 = Constant<value = int64 {2}>()
      n = Gather(s, i0)
      w = Gather(s, i2)
      axes = Constant<value_ints = [0]>()
      n1 = Unsqueeze(n, axes)
      w2 = Mul(w, two)
      w3 = Div(w2, four)
      w1 = Unsqueeze(w3, axes)
      t = Concat<axis = 0>(n1, rest, w1)
      y = Reshape(x, t)
    })");
  EXPECT_EQ(module->graph.num_nodes(), 1) << Print(*module);
  EXPECT_EQ(ToString(module->graph.outputs[0]->type), "float32[1,12,4]");
}

TEST(OddForms, NodesWithoutOrWithTheSameName) {
  auto module = ImportFolding(
      "g (float[2] x) => (float[2] y) { [n] a = Relu(x) [n] b = Relu(a) c = Relu(b) y = Relu(c) }");
  std::set<std::string> names;
  for (const Node* node : module->graph.Nodes()) names.insert(node->name());
  EXPECT_EQ(names.size(), 4);
}

TEST(OddForms, EqualWeightsStayTwoParametersAndOneUsedTwiceStaysOne) {
  auto module = ImportFolding(
      R"(g (float[2,2] x) => (float[2,2] y) <float[2,2] v = {1,2,3,4}, float[2,2] w = {1,2,3,4}> {
      a = MatMul(x, v) b = MatMul(a, w) y = MatMul(b, v) })");
  EXPECT_EQ(module->graph.FindValue("v")->uses().size(), 2);
  EXPECT_EQ(module->graph.FindValue("w")->kind(), ValueKind::kParameter);
  EXPECT_THAT(module->notes, ElementsAre(HasSubstr("'v' and 'w' hold the same numbers, but are two")));
  // A folded transpose; w is the other's, u is not, ones say nothing.
  module = ImportFolding(
      R"(g (float[2,2] x) => (float[2,3] y) <float[2,3] v = {1,2,3,4,5,6}, float[3,2] w = {1,4,2,5,3,6},
      float[3,2] u = {1,4,3,5,2,6}, float[2,2] a = {1,1,1,1}, float[2,2] b = {1,1,1,1}> {
      p = MatMul(x, v) q = MatMul(p, w) r = MatMul(q, a) s = MatMul(r, b) t = MatMul(s, v) k = MatMul(t, u)
      y = MatMul(k, v) })");
  EXPECT_THAT(module->notes, ElementsAre(HasSubstr("'v' and 'w' hold the same numbers, one transposed")));
}

TEST(OddForms, DeclaredOutputsMustBeWhatIsMade) {
  EXPECT_THAT(Refusal(Text("g (float[2,3] x) => (float[2,4] y) { y = Relu(x) }")),
              AllOf(HasSubstr("output 'y'"), HasSubstr("declared with shape [2,4] but is float32[2,3]")));
  EXPECT_THAT(Refusal(Text("g (float[2,3] x) => (float[6] y) { y = Relu(x) }")), HasSubstr("[6]"));
  EXPECT_THAT(Refusal(Text("g (float[2,3] x) => (int64[2,3] y) { y = Relu(x) }")),
              HasSubstr("element type int64"));
  Import(Text("g (float[2,3] x) => (float[A,B] y) { y = Relu(x) }"));
  Import(Text("g (float[2,3] x) => (y) { y = Relu(x) }"));
}

TEST(OddForms, AttributesThatChangeTheNumbers) {
  auto module = ImportFolding(
      R"(g (float[2] x) => (float[2] y, float[2] z) { y = Gelu<approximate = "tanh">(x) z = Gelu(x) })");
  EXPECT_EQ(module->graph.first_node()->attributes.String("approximate"), "tanh");
  // Integers divide towards zero; Mod takes the sign of the divisor, with fmod that of the dividend.
  module = ImportFolding(R"(g () => (q, m, f) <int64[4] a = {7, -7, 7, -7}, int64[4] b = {2, 2, -2, -2}> {
      q = Div(a, b) m = Mod(a, b) f = Mod<fmod = 1>(a, b) })");
  EXPECT_THAT(Constant<int64_t>(*module, 0), ElementsAre(3, -3, -3, 3));
  EXPECT_THAT(Constant<int64_t>(*module, 1), ElementsAre(1, 1, -1, -1));
  EXPECT_THAT(Constant<int64_t>(*module, 2), ElementsAre(1, -1, 1, -1));
  // Without saturate a cast of float 8 would differ; there are no such types here, and it changes nothing
  // else.
  module = ImportFolding(
      "g () => (y) { a = Constant<value_floats = [-1.7, 2.9]>() y = Cast<to = 7, saturate = 0>(a) }");
  EXPECT_THAT(Constant<int64_t>(*module, 0), ElementsAre(-1, 2));
}

}  // namespace
}  // namespace pipec
