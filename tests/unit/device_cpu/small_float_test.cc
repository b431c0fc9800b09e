// float16 and bfloat16: every op computes in float32 and rounds its results once. Compared with the float32
// kernel on the same values, rounded by the library of conversions, which shares nothing with the kernels'
// own loops.
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
};

TEST_P(SmallFloatTest, AProductIsRoundedOnce) {
  const Tensor a = Draw({7, 33}, 1), b = Draw({33, 5}, 2);
  KernelCall small("MatMul", ""), wide("MatMul", "");
  small.In(a).In(b).Out(GetParam(), {7, 5});
  wide.In(Wide(a)).In(Wide(b)).Out(DType::kFloat32, {7, 5});
  ExpectRounded(small, wide);
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
