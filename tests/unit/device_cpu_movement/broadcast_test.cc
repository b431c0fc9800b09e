// Ops of several operands against a plain loop over coordinates, for random shapes that broadcast.
#include <cmath>
#include <functional>
#include <limits>
#include <type_traits>

#include "runtime/device/cpu/kernels/typed.h"
#include "tests/unit/device_cpu_movement/kernel_case.h"

namespace pipec {
namespace {

using cpu::kDType;

// Shapes that broadcast to `result`: each dimension of each may be 1, leading ones may be missing.
Shape Shrunk(const Shape& result, std::mt19937& random) {
  Shape shape = result;
  for (int64_t& dim : shape) {
    if (RandomInt(0, 2, random) == 0) dim = 1;
  }
  shape.erase(shape.begin(), shape.begin() + RandomInt(0, static_cast<int64_t>(shape.size()), random));
  return shape;
}

Shape BroadcastOf(const std::vector<Shape>& shapes) {
  Shape result;
  for (const Shape& shape : shapes) {
    while (result.size() < shape.size()) result.insert(result.begin(), 1);
    for (size_t i = 0; i < shape.size(); ++i) {
      int64_t& dim = result[result.size() - shape.size() + i];
      dim = dim == 1 ? shape[i] : dim;
    }
  }
  return result;
}

std::vector<std::vector<Shape>> RandomShapes(int operands, std::mt19937& random) {
  std::vector<std::vector<Shape>> cases;
  for (int i = 0; i < 60; ++i) {
    // Mostly small; now and then rows that vectors and threads are worth, or nothing at all.
    Shape full = RandomShape(static_cast<int>(RandomInt(0, 5, random)), 1, 4, random);
    if (i % 10 == 0) full = {RandomInt(1, 5, random), RandomInt(3000, 9000, random)};
    if (i % 10 == 1) full = {3, 0, 2};
    std::vector<Shape> shapes;
    for (int k = 0; k < operands; ++k) shapes.push_back(Shrunk(full, random));
    cases.push_back(shapes);
  }
  const Shape matrix = {7, 33};
  for (const Shape& other : std::vector<Shape>{{7, 33}, {33}, {7, 1}, {}, {1, 33}}) {
    std::vector<Shape> shapes(operands, other);
    shapes[0] = matrix;
    cases.push_back(shapes);
    std::swap(shapes[0], shapes[operands - 1]);
    cases.push_back(shapes);
  }
  return cases;
}

template <typename T, typename R>
void CheckOne(const std::string& op, const std::vector<Shape>& shapes,
              const std::vector<std::vector<T>>& values, const std::function<R(const std::vector<T>&)>& f,
              DType result_type, double tolerance) {
  const Shape shape = BroadcastOf(shapes);
  KernelCase call(op);
  for (size_t k = 0; k < shapes.size(); ++k) {
    call.In(Values(kDType<T>, shapes[k], values[k]));
    if (NumElements(shapes[k]) == NumElements(shape) && sizeof(T) == sizeof(R))
      call.MayLieAt(static_cast<int>(k));
  }
  const std::vector<R> got = call.Out(result_type, shape).template Get<R>();
  for (int64_t i = 0; i < NumElements(shape); ++i) {
    std::vector<T> operands;
    for (size_t k = 0; k < shapes.size(); ++k)
      operands.push_back(values[k][BroadcastPlace(shapes[k], Coordinates(shape, i))]);
    const R wanted = f(operands);
    if (wanted != wanted) {
      ASSERT_NE(got[i], got[i]) << op << " at " << i << " is not NaN";
      continue;
    }
    ASSERT_NEAR(static_cast<double>(got[i]), static_cast<double>(wanted),
                tolerance * std::fabs(static_cast<double>(wanted)))
        << op << " of " << Name(kDType<T>) << " at " << i << " of " << ToString(shape);
  }
}

template <typename T, typename R = T>
void Check(const std::string& op, const std::type_identity_t<std::function<R(T, T)>>& f, double tolerance = 0,
           int operands = 2, DType result_type = kDType<T>) {
  std::mt19937 random(3);
  for (const std::vector<Shape>& shapes : RandomShapes(operands, random)) {
    std::vector<std::vector<T>> values;
    for (const Shape& shape : shapes) {
      values.push_back(RandomValues<T>(NumElements(shape), random));
      for (T& value : values.back()) value = value == T{0} ? T{1} : value;  // no zero divisors
    }
    CheckOne<T, R>(
        op, shapes, values,
        [&](const std::vector<T>& x) {
          R result = static_cast<R>(x[0]);
          for (size_t k = 1; k < x.size(); ++k)
            result = f(static_cast<T>(k == 1 ? x[0] : static_cast<T>(result)), x[k]);
          return result;
        },
        result_type, tolerance);
  }
}

template <typename T>
void CheckArithmetic() {
  Check<T>("Add", [](T a, T b) { return static_cast<T>(a + b); });
  Check<T>("Sub", [](T a, T b) { return static_cast<T>(a - b); });
  Check<T>("Mul", [](T a, T b) { return static_cast<T>(a * b); });
  Check<T>("Div", [](T a, T b) { return static_cast<T>(a / b); });
  for (int operands : {1, 2, 3, 4}) {
    Check<T>(
        "Max", [](T a, T b) { return std::max(a, b); }, 0, operands);
    Check<T>(
        "Min", [](T a, T b) { return std::min(a, b); }, 0, operands);
  }
  const auto compare = [](const char* op, std::function<bool(T, T)> f) {
    Check<T, uint8_t>(
        op, [f](T a, T b) { return static_cast<uint8_t>(f(a, b)); }, 0, 2, DType::kBool);
  };
  compare("Equal", [](T a, T b) { return a == b; });
  compare("Less", [](T a, T b) { return a < b; });
  compare("LessOrEqual", [](T a, T b) { return a <= b; });
  compare("Greater", [](T a, T b) { return a > b; });
  compare("GreaterOrEqual", [](T a, T b) { return a >= b; });
}

TEST(Broadcast, Float32) { CheckArithmetic<float>(); }
TEST(Broadcast, Float64) { CheckArithmetic<double>(); }
TEST(Broadcast, SignedIntegers) {
  CheckArithmetic<int8_t>();
  CheckArithmetic<int16_t>();
  CheckArithmetic<int32_t>();
  CheckArithmetic<int64_t>();
}
TEST(Broadcast, UnsignedIntegers) {
  CheckArithmetic<uint8_t>();
  CheckArithmetic<uint16_t>();
  CheckArithmetic<uint32_t>();
  CheckArithmetic<uint64_t>();
}

TEST(Broadcast, Sum) {
  for (int operands : {1, 2, 3, 5})
    Check<float>(
        "Sum", [](float a, float b) { return a + b; }, 0, operands);
}

TEST(Broadcast, Pow) {
  Check<float>(
      "Pow", [](float a, float b) { return std::pow(a, b); }, 1e-6);
  Check<double>(
      "Pow", [](double a, double b) { return std::pow(a, b); }, 1e-14);
  const auto pow = [](auto base, auto exponent) {
    using T = decltype(base);
    using E = decltype(exponent);
    return KernelCase("Pow")
        .In(Values<T>(kDType<T>, {1}, {base}))
        .In(Values<E>(kDType<E>, {}, {exponent}))
        .Out(kDType<T>, {1})
        .template Get<T>()[0];
  };
  EXPECT_EQ(pow(int32_t{-3}, int64_t{5}), -243);
  EXPECT_EQ(pow(int64_t{2}, uint8_t{62}), int64_t{1} << 62);
  EXPECT_EQ(pow(int64_t{-1}, int32_t{-3}), -1);
  EXPECT_EQ(pow(int64_t{5}, int32_t{-1}), 0);
  EXPECT_EQ(pow(int32_t{2}, 30.5f), 1518500249);
  EXPECT_EQ(pow(int32_t{2}, 99.0f), std::numeric_limits<int32_t>::max());
  EXPECT_EQ(pow(1.5f, int64_t{2}), 2.25f);
  EXPECT_EQ(pow(-0.5f, 2.0f), 0.25f);
}

TEST(Broadcast, Logic) {
  const std::vector<uint8_t> a = {0, 0, 1, 1}, b = {0, 1, 0, 1};
  const auto run = [&](const char* op) {
    return KernelCase(op)
        .In(Values(DType::kBool, {4}, a))
        .In(Values(DType::kBool, {4}, b))
        .Out(DType::kBool, {4})
        .MayLieAt(0)
        .MayLieAt(1)
        .Get<uint8_t>();
  };
  EXPECT_THAT(run("And"), ::testing::ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(run("Or"), ::testing::ElementsAre(0, 1, 1, 1));
  EXPECT_THAT(run("Xor"), ::testing::ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(run("Equal"), ::testing::ElementsAre(1, 0, 0, 1));
}

template <typename T>
void CheckWhere(DType dtype) {
  std::mt19937 random(4);
  for (const std::vector<Shape>& shapes : RandomShapes(3, random)) {
    const Shape shape = BroadcastOf(shapes);
    const auto condition = RandomValues<uint8_t>(NumElements(shapes[0]), random, 0, 2);
    const auto x = RandomValues<T>(NumElements(shapes[1]), random),
               y = RandomValues<T>(NumElements(shapes[2]), random);
    KernelCase call("Where");
    call.In(Values(DType::kBool, shapes[0], condition))
        .In(Values(dtype, shapes[1], x))
        .In(Values(dtype, shapes[2], y));
    for (int k : {1, 2}) {
      if (NumElements(shapes[k]) == NumElements(shape)) call.MayLieAt(k);
    }
    std::vector<T> wanted;
    for (int64_t i = 0; i < NumElements(shape); ++i) {
      const std::vector<int64_t> at = Coordinates(shape, i);
      wanted.push_back(condition[BroadcastPlace(shapes[0], at)] ? x[BroadcastPlace(shapes[1], at)]
                                                                : y[BroadcastPlace(shapes[2], at)]);
    }
    ASSERT_EQ(call.Out(dtype, shape).template Get<T>(), wanted) << ToString(shape);
  }
}

TEST(Broadcast, Where) {
  CheckWhere<float>(DType::kFloat32);
  CheckWhere<int64_t>(DType::kInt64);
  CheckWhere<uint8_t>(DType::kBool);
  CheckWhere<uint16_t>(DType::kFloat16);
}

template <typename T>
T Mod(T a, T b, int64_t fmod) {
  return KernelCase("Mod")
      .Attr("fmod", fmod)
      .In(Values<T>(kDType<T>, {1}, {a}))
      .In(Values<T>(kDType<T>, {1}, {b}))
      .Out(kDType<T>, {1})
      .template Get<T>()[0];
}

TEST(Arithmetic, ModHasTheDivisorsSignFmodTheDividends) {
  EXPECT_EQ(Mod<int32_t>(-7, 3, 0), 2);
  EXPECT_EQ(Mod<int32_t>(7, -3, 0), -2);
  EXPECT_EQ(Mod<int32_t>(-6, 3, 0), 0);
  EXPECT_EQ(Mod<int32_t>(-7, 3, 1), -1);
  EXPECT_EQ(Mod<uint8_t>(200, 7, 0), 4);
  EXPECT_EQ(Mod<float>(-7.5f, 2.0f, 1), -1.5f);
}

TEST(Arithmetic, TheLeastIntegerDividedByMinusOneWraps) {
  const int64_t least = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(Mod<int64_t>(least, -1, 0), 0);
  EXPECT_EQ(Mod<int64_t>(least, -1, 1), 0);
  EXPECT_EQ(KernelCase("Div").In(Int64s({least})).In(Int64s({-1})).Out(DType::kInt64, {1}).Get<int64_t>()[0],
            least);
}

TEST(Arithmetic, IntegersWrapAround) {
  const std::vector<uint16_t> most = {65535};
  EXPECT_EQ(KernelCase("Mul")
                .In(Values(DType::kUint16, {1}, most))
                .In(Values(DType::kUint16, {1}, most))
                .Out(DType::kUint16, {1})
                .Get<uint16_t>()[0],
            1);
}

TEST(Arithmetic, IntegerDivisionByZeroIsAnErrorThatNamesThePlace) {
  for (const char* op : {"Div", "Mod"}) {
    const absl::Status status =
        KernelCase(op).In(Int64s({1, 2})).In(Int64s({3, 0})).Out(DType::kInt64, {2}).Error();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << op;
    EXPECT_THAT(status.message(), ::testing::HasSubstr("element 1 of input 1"));
  }
}

TEST(Arithmetic, MaxAndMinPassNanOn) {
  const float nan = std::nanf("");
  for (const char* op : {"Max", "Min"}) {
    for (int operands : {2, 3}) {
      KernelCase call(op);
      call.In(Values<float>(DType::kFloat32, {2}, {nan, 1}))
          .In(Values<float>(DType::kFloat32, {2}, {1, nan}));
      if (operands == 3) call.In(Values<float>(DType::kFloat32, {2}, {2, 2}));
      for (float value : call.Out(DType::kFloat32, {2}).Get<float>()) EXPECT_TRUE(std::isnan(value)) << op;
    }
  }
}

TEST(Broadcast, ShapesThatDoNotFitAreRefused) {
  const auto run = [](const Shape& a, const Shape& b, const Shape& result) {
    return KernelCase("Add")
        .In(Values(DType::kFloat32, a, std::vector<float>(NumElements(a))))
        .In(Values(DType::kFloat32, b, std::vector<float>(NumElements(b))))
        .Out(DType::kFloat32, result)
        .Error();
  };
  EXPECT_THAT(run({2, 3}, {2}, {2, 3}).message(), ::testing::HasSubstr("[2] does not broadcast to [2,3]"));
  EXPECT_THAT(run({2, 3}, {3}, {3, 2}).message(),
              ::testing::HasSubstr("output 0 is float32[3,2], wanted float32[2,3]"));
  EXPECT_EQ(run({1, 1, 1, 1, 1, 1, 1, 1, 1}, {}, {1}).code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace pipec
