// float16 and bfloat16: every op computes in float32 and rounds its results once. Compared with the float32
// kernel on the same values, rounded by the library of conversions, which shares nothing with the kernels'
// own loops. Products may add up in another order where the processor has them in 16 bits.
#include <cmath>
#include <limits>

#include "runtime/base/small_floats.h"
#include "tests/unit/device_cpu/kernel_call.h"

namespace pipec {
namespace {

Tensor Narrow(DType dtype, const Shape& shape, const std::vector<double>& values) {
  const std::vector<float> floats(values.begin(), values.end());
  const std::string bytes = RoundToSmallFloats(dtype, floats);
  Tensor tensor{{dtype, shape}, std::vector<std::byte>(bytes.size())};
  std::memcpy(tensor.bytes.data(), bytes.data(), bytes.size());
  return tensor;
}

std::vector<double> Widened(const Tensor& tensor) {
  std::vector<float> wide;
  ToFloats(tensor.type.dtype, {reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size()},
           wide);
  return {wide.begin(), wide.end()};
}

class SmallFloatTest : public ::testing::TestWithParam<DType> {
 protected:
  // Values that the type holds exactly.
  Tensor Draw(const Shape& shape, int seed) {
    return Narrow(GetParam(), shape, RandomValues(NumElements(shape), seed));
  }
  Tensor Wide(const Tensor& small) { return Make(DType::kFloat32, small.type.shape, Widened(small)); }

  // Runs `small` and `wide`, which differ in the type only, and compares result k bit by bit.
  void ExpectRounded(const KernelCall& small, const KernelCall& wide, int k = 0) {
    absl::StatusOr<std::vector<Tensor>> got = small.Run(), wanted = wide.Run();
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_TRUE(wanted.ok()) << wanted.status();
    const Tensor& w = (*wanted)[k];
    EXPECT_EQ((*got)[k].bytes, Narrow(GetParam(), w.type.shape, Values(w)).bytes);
  }

  // The same but for the last bit.
  void ExpectNearlyRounded(const KernelCall& small, const KernelCall& wide) {
    absl::StatusOr<std::vector<Tensor>> got = small.Run();
    ASSERT_TRUE(got.ok()) << got.status();
    const std::vector<double> values = Widened((*got)[0]), wanted = wide.Get(0);
    const double half_a_bit = GetParam() == DType::kBFloat16 ? 0x1p-8 : 0x1p-11;
    for (size_t i = 0; i < wanted.size(); ++i)
      EXPECT_NEAR(values[i], wanted[i], half_a_bit * std::abs(wanted[i]) * 1.01 + 1e-5) << i;
  }
};

TEST_P(SmallFloatTest, AProductIsRoundedOnce) {
  const Tensor a = Draw({7, 500}, 1), b = Draw({500, 5}, 2);
  KernelCall small("MatMul", ""), wide("MatMul", "");
  small.In(a).In(b).Out(GetParam(), {7, 5});
  wide.In(Wide(a)).In(Wide(b)).Out(DType::kFloat32, {7, 5});
  ExpectNearlyRounded(small, wide);
}

TEST_P(SmallFloatTest, AProductMayStayFloat32) {
  const Tensor a = Draw({3, 500, 7}, 1), b = Draw({3, 5, 500}, 2);
  KernelCall small("FusedMatMul", kHelpers), wide("FusedMatMul", kHelpers);
  small.In(a).In(b).Out(DType::kFloat32, {3, 7, 5}).Attr("to", int64_t{1});
  wide.In(Wide(a)).In(Wide(b)).Out(DType::kFloat32, {3, 7, 5});
  for (KernelCall* call : {&small, &wide})
    call->Attr("trans_a", int64_t{1}).Attr("trans_b", int64_t{1}).Attr("alpha", 0.5f);
  ExpectNear(small.Get(0), wide.Get(0), 1e-5, "float32 result");
}

TEST_P(SmallFloatTest, ABiasIsAddedBeforeItRounds) {
  const Tensor a = Draw({3, 7, 33}, 1), b = Draw({5, 33}, 2), bias = Draw({5}, 3);
  KernelCall small("FusedMatMul", kHelpers), wide("FusedMatMul", kHelpers);
  small.In(a).In(b).In(bias).Out(GetParam(), {3, 7, 5}).Attr("trans_b", int64_t{1});
  wide.In(Wide(a)).In(Wide(b)).In(Wide(bias)).Out(DType::kFloat32, {3, 7, 5}).Attr("trans_b", int64_t{1});
  ExpectNearlyRounded(small, wide);
}

TEST_P(SmallFloatTest, GeluIsTakenBeforeItRounds) {
  const Tensor a = Draw({3, 7, 33}, 1), b = Draw({5, 33}, 2), bias = Draw({5}, 3);
  KernelCall small("FusedMatMul", kHelpers), wide("FusedMatMul", kHelpers);
  small.In(a).In(b).In(bias).Out(GetParam(), {3, 7, 5});
  wide.In(Wide(a)).In(Wide(b)).In(Wide(bias)).Out(DType::kFloat32, {3, 7, 5});
  for (KernelCall* call : {&small, &wide})
    call->Attr("trans_b", int64_t{1}).Attr("activation", std::string("GeluTanh"));
  ExpectNearlyRounded(small, wide);
}

// Of two roundings, where the product is one of the processor's.
TEST_P(SmallFloatTest, GelusSlopeOfAProduct) {
  const Tensor a = Draw({7, 33}, 1), b = Draw({5, 33}, 2), x = Draw({7, 5}, 3);
  KernelCall small("FusedMatMul", kHelpers), wide("FusedMatMul", kHelpers);
  small.In(a).In(b).NoIn().In(x).Out(GetParam(), {7, 5});
  wide.In(Wide(a)).In(Wide(b)).NoIn().In(Wide(x)).Out(DType::kFloat32, {7, 5});
  for (KernelCall* call : {&small, &wide})
    call->Attr("trans_b", int64_t{1}).Attr("activation", std::string("GeluTanhGrad"));
  const absl::StatusOr<std::vector<Tensor>> got = small.Run();
  ASSERT_TRUE(got.ok()) << got.status();
  ExpectNear(Values(Wide((*got)[0])), wide.Get(), GetParam() == DType::kFloat16 ? 2e-3 : 2e-2, "rounded twice");
}

TEST_P(SmallFloatTest, GeluAndItsGradient) {
  const Tensor x = Draw({3, 70}, 1), dy = Draw({3, 70}, 2);
  for (const char* form : {"tanh", "none"}) {
    KernelCall small("Gelu", ""), wide("Gelu", ""), grad("GeluGrad", kHelpers), wide_grad("GeluGrad", kHelpers);
    small.In(x).Out(GetParam(), {3, 70}), wide.In(Wide(x)).Out(DType::kFloat32, {3, 70});
    grad.In(dy).In(x).Out(GetParam(), {3, 70}), wide_grad.In(Wide(dy)).In(Wide(x)).Out(DType::kFloat32, {3, 70});
    for (KernelCall* call : {&small, &wide, &grad, &wide_grad}) call->Attr("approximate", std::string(form));
    ExpectNearlyRounded(small, wide);
    ExpectNearlyRounded(grad, wide_grad);
  }
}

TEST_P(SmallFloatTest, WeightGradientsAreFloat32) {
  const Tensor dy = Draw({500, 6}, 1), x = Draw({500, 5}, 2);
  KernelCall small("MatMulWeightGrad", kHelpers), wide("MatMulWeightGrad", kHelpers);
  small.In(dy).In(x).Attr("to", int64_t{1}), wide.In(Wide(dy)).In(Wide(x));
  for (KernelCall* call : {&small, &wide}) call->Out(DType::kFloat32, {5, 6}).Out(DType::kFloat32, {6});
  for (int k : {0, 1}) ExpectNear(small.Get(k), wide.Get(k), 1e-5, "float32 result");
}

TEST_P(SmallFloatTest, GemmAddsBeforeItRounds) {
  for (float beta : {1.0f, 0.5f}) {
    for (const Shape& shape : {Shape{5}, Shape{7, 1}, Shape{7, 5}}) {
      const Tensor a = Draw({7, 33}, 1), b = Draw({5, 33}, 2), c = Draw(shape, 3);
      KernelCall small("Gemm", ""), wide("Gemm", "");
      small.In(a).In(b).In(c).Out(GetParam(), {7, 5}).Attr("transB", int64_t{1}).Attr("beta", beta);
      wide.In(Wide(a)).In(Wide(b)).In(Wide(c)).Out(DType::kFloat32, {7, 5});
      wide.Attr("transB", int64_t{1}).Attr("beta", beta);
      ExpectNearlyRounded(small, wide);
    }
  }
}

TEST_P(SmallFloatTest, ConvolutionsAndTheirGradients) {
  const Shape x = {2, 6, 9, 8}, w = {4, 3, 3, 3}, y = {2, 4, 9, 8};
  struct Case {
    const char *op, *domain;
    std::vector<Shape> inputs;
    Shape output;
  };
  for (const Case& c : {Case{"Conv", "", {x, w, {4}}, y},
                        {"ConvTranspose", "", {y, w}, x},
                        {"ConvInputGrad", kHelpers, {y, w}, x},
                        {"ConvWeightGrad", kHelpers, {y, x}, w}}) {
    KernelCall small(c.op, c.domain), wide(c.op, c.domain);
    for (size_t k = 0; k < c.inputs.size(); ++k) {
      const Tensor operand = Draw(c.inputs[k], static_cast<int>(k));
      small.In(operand), wide.In(Wide(operand));
    }
    small.Out(GetParam(), c.output), wide.Out(DType::kFloat32, c.output);
    for (KernelCall* call : {&small, &wide}) {
      call->Attr("pads", std::vector<int64_t>{1, 1, 1, 1}).Attr("group", int64_t{2});
      if (*c.domain != 0) call->Attr("shape", std::vector<int64_t>(c.output.begin(), c.output.end()));
    }
    ExpectNearlyRounded(small, wide);
  }
}

TEST_P(SmallFloatTest, OperandsOfOtherTypesStay) {
  const Tensor x = Draw({4, 6}, 3);
  const Tensor three = Make(DType::kInt64, {1}, {3});
  KernelCall small("TopK", ""), wide("TopK", "");
  small.In(x).In(three).Out(GetParam(), {4, 3}).Out(DType::kInt64, {4, 3});
  wide.In(Wide(x)).In(three).Out(DType::kFloat32, {4, 3}).Out(DType::kInt64, {4, 3});
  ExpectRounded(small, wide);
  EXPECT_EQ(small.Get(1), wide.Get(1));
}

TEST_P(SmallFloatTest, AResultMayLieWhereAnOperandLies) {
  const Tensor x = Draw({1000}, 4), y = Draw({1000}, 5);
  KernelCall small("Mul", ""), wide("Mul", "");
  small.In(x).In(y).Out(GetParam(), {1000}).At(0);
  wide.In(Wide(x)).In(Wide(y)).Out(DType::kFloat32, {1000});
  ExpectRounded(small, wide);
}

TEST_P(SmallFloatTest, ExtremesSurvive) {
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<double> values = {infinity, -infinity, std::nan(""), 0.0,     -0.0,
                                65504,    6e-8,      1e-7,         -6.1e-5, 1e38};
  while (values.size() < 19)
    values.push_back(static_cast<double>(values.size()) / 7);  // more than a vector of them
  const Tensor x = Narrow(GetParam(), {19}, values);
  KernelCall small("Neg", ""), wide("Neg", "");
  small.In(x).Out(GetParam(), {19});
  wide.In(Wide(x)).Out(DType::kFloat32, {19});
  ExpectRounded(small, wide);
}

TEST_P(SmallFloatTest, NoKernelIsInventedForOtherTypes) {
  KernelCall call("BitwiseNot", "");
  call.In(Draw({3}, 6)).Out(GetParam(), {3});
  EXPECT_EQ(call.Run().status().code(), absl::StatusCode::kUnimplemented);
}

INSTANTIATE_TEST_SUITE_P(SmallFloats, SmallFloatTest, ::testing::Values(DType::kFloat16, DType::kBFloat16));

}  // namespace
}  // namespace pipec
