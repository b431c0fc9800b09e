// Weights of 4 bits: packed in model files, a byte an element in a module.
#include "compiler/onnx/read/attribute_proto.h"
#include "onnx/onnx_pb.h"
#include "tests/unit/onnx/model_file.h"
#include "tests/unit/onnx/run_module.h"

namespace pipec {
namespace {

// 5 numbers, -1 -8 1 7 0, the first in the lowest bits.
const std::string kPacked("\x8f\x71\x00", 3), kUnpacked("\xff\xf8\x01\x07\x00", 5);

// y = x * DequantizeLinear(w, 0.5).
onnx::ModelProto Model() {
  onnx::ModelProto model;
  model.set_ir_version(10);
  model.add_opset_import()->set_version(21);
  auto& graph = *model.mutable_graph();
  graph.set_name("g");
  auto& weight = *graph.add_initializer();
  weight.set_name("w");
  weight.set_data_type(onnx::TensorProto::INT4);
  weight.add_dims(5);
  auto& scale = *graph.add_initializer();
  scale.set_name("scale");
  scale.set_data_type(onnx::TensorProto::FLOAT);
  scale.add_float_data(0.5f);
  auto& input = *graph.add_input();
  input.set_name("x");
  input.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
  input.mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(5);
  auto& output = *graph.add_output();
  output = input;
  output.set_name("y");
  auto& wide = *graph.add_node();
  wide.set_op_type("DequantizeLinear");
  wide.add_input("w");
  wide.add_input("scale");
  wide.add_output("wide");
  auto& product = *graph.add_node();
  product.set_op_type("Mul");
  product.add_input("x");
  product.add_input("wide");
  product.add_output("y");
  return model;
}

absl::StatusOr<std::unique_ptr<Module>> ImportProto(const onnx::ModelProto& model) {
  return ImportModel(WriteFile("model.onnx", model.SerializeAsString()), {});
}

void ExpectWeights(const onnx::ModelProto& model) {
  const auto module = ImportProto(model);
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_EQ(VerifyModel(**module), absl::OkStatus());
  const Value& w = *(*module)->graph.FindValue("w");
  EXPECT_EQ(w.kind(), ValueKind::kConstant);  // 4 bits do not learn
  EXPECT_EQ(*ReadData(w), kUnpacked);
  // x counts 0.25, 0.5, ...
  EXPECT_EQ(RunModule(**module), (std::vector<float>{-0.125f, -2, 0.375f, 3.5f, 0}));
}

TEST(TinyTypes, PackedContentsAreUnpackedFromEveryPlace) {
  onnx::ModelProto model = Model();
  auto& weight = *model.mutable_graph()->mutable_initializer(0);
  weight.set_raw_data(kPacked);
  ExpectWeights(model);
  weight.clear_raw_data();
  for (int byte : {0x8f, 0x71, 0}) weight.add_int32_data(byte);
  ExpectWeights(model);
  weight.clear_int32_data();
  WriteFile("weights.bin", "ab" + kPacked);
  weight.set_data_location(onnx::TensorProto::EXTERNAL);
  for (const auto& [key, value] : {std::pair("location", "weights.bin"), {"offset", "2"}, {"length", "3"}}) {
    auto& entry = *weight.add_external_data();
    entry.set_key(key);
    entry.set_value(value);
  }
  ExpectWeights(model);
}

TEST(TinyTypes, AWrongNumberOfPackedBytesIsRefused) {
  onnx::ModelProto model = Model();
  model.mutable_graph()->mutable_initializer(0)->set_raw_data(kUnpacked);
  EXPECT_EQ(ImportProto(model).status().message(),
            (TestFolder() / "model.onnx").string() +
                ": initializer 'w': has 5 bytes of data, its type int4[5] needs 3");
}

TEST(TinyTypes, ModelsAreWrittenPacked) {
  EXPECT_EQ(ToProto({DType::kInt4, {5}}, kUnpacked).raw_data(), kPacked);
}

}  // namespace
}  // namespace pipec
