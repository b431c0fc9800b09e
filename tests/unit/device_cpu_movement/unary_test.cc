// Element-wise ops of one operand against the C library.
#include <bit>
#include <cmath>
#include <limits>

#include "runtime/device/cpu/kernels/typed.h"
#include "tests/unit/device_cpu_movement/kernel_case.h"

namespace pipec {
namespace {

using cpu::kDType;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct Function {
  const char* op;
  double (*f)(double);
  bool integers;  // signed ones too
};

const Function kFunctions[] = {
    {"Abs", [](double x) { return std::fabs(x); }, true},
    {"Ceil", [](double x) { return std::ceil(x); }, false},
    {"Cos", [](double x) { return std::cos(x); }, false},
    {"Erf", [](double x) { return std::erf(x); }, false},
    {"Exp", [](double x) { return std::exp(x); }, false},
    {"Floor", [](double x) { return std::floor(x); }, false},
    {"Log", [](double x) { return std::log(x); }, false},
    {"Neg", [](double x) { return -x; }, true},
    {"Reciprocal", [](double x) { return 1 / x; }, false},
    {"Relu", [](double x) { return x < 0 ? 0 : x; }, true},
    {"Sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }, false},
    {"Sign", [](double x) { return x > 0   ? 1
                                   : x < 0 ? -1
                                           : x; }, true},
    {"Sin", [](double x) { return std::sin(x); }, false},
    {"Sqrt", [](double x) { return std::sqrt(x); }, false},
    {"Tanh", [](double x) { return std::tanh(x); }, false},
};

template <typename T>
void Check(const Function& function, const std::vector<T>& x, double tolerance) {
  const Shape shape = {static_cast<int64_t>(x.size())};
  const std::vector<T> y = KernelCase(function.op)
                               .In(Values(kDType<T>, shape, x))
                               .Out(kDType<T>, shape)
                               .MayLieAt(0)
                               .template Get<T>();
  for (size_t i = 0; i < x.size(); ++i) {
    const double got = static_cast<double>(y[i]);
    const double wanted = static_cast<double>(static_cast<T>(function.f(static_cast<double>(x[i]))));
    if (std::isnan(wanted)) {
      EXPECT_TRUE(std::isnan(got)) << function.op << "(" << +x[i] << ") is " << got;
    } else if (std::isinf(wanted) || wanted == 0) {
      EXPECT_EQ(got, wanted) << function.op << "(" << +x[i] << ")";
    } else {
      EXPECT_NEAR(got, wanted, tolerance * std::fabs(wanted)) << function.op << "(" << +x[i] << ")";
    }
  }
}

template <typename T>
void CheckFloats(double tolerance) {
  std::mt19937 random(1);
  std::vector<T> x = RandomValues<T>(3001, random, -20, 20);
  for (double special :
       {0.0, -0.0, kInfinity, -kInfinity, kNan, 1.0, -1.0, 1e-30, 700.0, -700.0, 0.25, 1e30}) {
    x.push_back(static_cast<T>(special));
  }
  for (const Function& function : kFunctions) Check<T>(function, x, tolerance);
}

TEST(Unary, Float32) { CheckFloats<float>(5e-7); }
TEST(Unary, Float64) { CheckFloats<double>(1e-15); }

template <typename T>
void CheckIntegers() {
  std::mt19937 random(2);
  for (const Function& function : kFunctions) {
    if (function.integers) Check<T>(function, RandomValues<T>(100, random), 0);
  }
}

TEST(Unary, Integers) {
  CheckIntegers<int8_t>();
  CheckIntegers<int16_t>();
  CheckIntegers<int32_t>();
  CheckIntegers<int64_t>();
  // The least integer has no opposite: it wraps around.
  const std::vector<int32_t> least = {std::numeric_limits<int32_t>::min()};
  for (const char* op : {"Neg", "Abs"}) {
    EXPECT_EQ(KernelCase(op).In(Values(DType::kInt32, {1}, least)).Out(DType::kInt32, {1}).Get<int32_t>(),
              least);
  }
}

TEST(Unary, Not) {
  const std::vector<uint8_t> x = {1, 0, 0, 1}, wanted = {0, 1, 1, 0};
  EXPECT_EQ(
      KernelCase("Not").In(Values(DType::kBool, {4}, x)).Out(DType::kBool, {4}).MayLieAt(0).Get<uint8_t>(),
      wanted);
}

TEST(Unary, NoKernelForOtherTypes) {
  const KernelCase integer =
      KernelCase("Exp").In(Values<int32_t>(DType::kInt32, {1}, {0})).Out(DType::kInt32, {1});
  EXPECT_EQ(integer.Error().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(integer.Error().message(), ::testing::HasSubstr("int32"));
}

// Every 4001st float32 there is: within 3 units in the last place.
TEST(Unary, Float32IsAccurateEverywhere) {
  std::vector<float> x;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 4001) {
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  const Shape shape = {static_cast<int64_t>(x.size())};
  for (const Function& function : kFunctions) {
    const auto y = KernelCase(function.op)
                       .In(Values(DType::kFloat32, shape, x))
                       .Out(DType::kFloat32, shape)
                       .Get<float>();
    for (size_t i = 0; i < x.size(); ++i) {
      const double wanted = function.f(x[i]);
      const auto rounded = static_cast<float>(wanted);
      if (std::isnan(rounded)) {
        ASSERT_TRUE(std::isnan(y[i])) << function.op << " of " << x[i];
      } else if (std::isinf(rounded)) {
        ASSERT_EQ(y[i], rounded) << function.op << " of " << x[i];
      } else {
        int exponent;
        std::frexp(rounded, &exponent);
        ASSERT_NEAR(y[i], wanted, 3 * std::ldexp(1.0, std::max(exponent - 24, -149)))
            << function.op << " of " << x[i];
      }
    }
  }
}

}  // namespace
}  // namespace pipec
