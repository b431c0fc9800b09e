// Result types that onnx's own inference does not find or finds wrong.
#include <cstring>

#include "compiler/onnx/schema/infer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/small_floats.h"

namespace pipec {
namespace {

template <typename T>
Value* Constant(Graph& graph, DType dtype, Shape shape, std::vector<T> values) {
  std::string bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  return graph.AddConstant("c", {dtype, std::move(shape)}, std::move(bytes));
}

std::string Infer(NodeSpec spec) {
  absl::StatusOr<std::vector<TensorType>> types = InferTypes(spec, 1);
  return types.ok() ? ToString((*types)[0]) : std::string(types.status().message());
}

TEST(OwnInference, RangeOfAnyElementsAndOfShapeOne) {
  Graph graph;
  const auto ints = [&](int64_t value, Shape shape) {
    return Constant<int64_t>(graph, DType::kInt64, std::move(shape), {value});
  };
  EXPECT_EQ(Infer({.op = "Range", .inputs = {ints(2, {}), ints(9, {1}), ints(3, {})}}), "int64[3]");
  EXPECT_EQ(Infer({.op = "Range", .inputs = {ints(9, {}), ints(2, {}), ints(3, {})}}), "int64[0]");
  EXPECT_THAT(Infer({.op = "Range", .inputs = {ints(9, {}), ints(2, {}), ints(0, {})}}),
              ::testing::HasSubstr("has no length"));
  const auto small = [&](double value) {
    return Constant<Float16>(graph, DType::kFloat16, {}, {ToFloat16(value)});
  };
  EXPECT_EQ(Infer({.op = "Range", .inputs = {small(1), small(4), small(0.5)}}), "float16[6]");
}

TEST(OwnInference, StftIsOnesidedUnlessTold) {
  Graph graph;
  Value* signal = Constant<float>(graph, DType::kFloat32, {1, 20, 1}, std::vector<float>(20));
  Value* step = Constant<int64_t>(graph, DType::kInt64, {}, {3});
  Value* window = Constant<float>(graph, DType::kFloat32, {8}, std::vector<float>(8));
  NodeSpec spec{.op = "STFT", .inputs = {signal, step, window}};
  EXPECT_EQ(Infer(spec), "float32[1,5,5,2]");
  spec.attributes.Set("onesided", int64_t{0});
  EXPECT_EQ(Infer(spec), "float32[1,5,8,2]");
}

TEST(OwnInference, MaxUnpoolToAGivenShape) {
  Graph graph;
  Value* x = Constant<float>(graph, DType::kFloat32, {1, 1, 2, 2}, std::vector<float>(4));
  Value* places = Constant<int64_t>(graph, DType::kInt64, {1, 1, 2, 2}, std::vector<int64_t>(4));
  Value* shape = Constant<int64_t>(graph, DType::kInt64, {4}, {1, 1, 5, 6});
  NodeSpec spec{.op = "MaxUnpool", .inputs = {x, places, shape}};
  spec.attributes.Set("kernel_shape", std::vector<int64_t>{2, 2});
  EXPECT_EQ(Infer(spec), "float32[1,1,5,6]");
}

}  // namespace
}  // namespace pipec
