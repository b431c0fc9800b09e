// Reductions against a plain loop over coordinates, for random shapes and axes.
#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "runtime/device/cpu/kernels/typed.h"
#include "tests/unit/device_cpu_movement/kernel_case.h"

namespace pipec {
namespace {

using cpu::kDType;

struct Reduction {
  const char* op;
  long double first;
  long double (*fold)(long double, long double);
};

const Reduction kReductions[] = {
    {"ReduceSum", 0, [](long double a, long double b) { return a + b; }},
    {"ReduceMean", 0, [](long double a, long double b) { return a + b; }},
    {"ReduceSumSquare", 0, [](long double a, long double b) { return a + b * b; }},
    {"ReduceProd", 1, [](long double a, long double b) { return a * b; }},
    {"ReduceMax", -1e9, [](long double a, long double b) { return std::max(a, b); }},
    {"ReduceMin", 1e9, [](long double a, long double b) { return std::min(a, b); }},
};

template <typename T>
void CheckOne(const Reduction& reduction, const Shape& shape, std::vector<int64_t> axes, bool keep_dims,
              std::mt19937& random) {
  const bool product = std::string(reduction.op) == "ReduceProd";
  const auto x = RandomValues<T>(NumElements(shape), random, product ? 0.9 : -9, product ? 1.1 : 9);
  std::vector<bool> gone(shape.size(), axes.empty());
  for (int64_t& axis : axes) {
    gone[axis] = true;
    if (RandomInt(0, 1, random)) axis -= static_cast<int64_t>(shape.size());
  }
  Shape kept, result;
  for (size_t i = 0; i < shape.size(); ++i) {
    kept.push_back(gone[i] ? 1 : shape[i]);
    if (!gone[i] || keep_dims) result.push_back(kept.back());
  }
  std::vector<long double> wanted(NumElements(result), reduction.first);
  for (int64_t i = 0; i < NumElements(shape); ++i) {
    long double& to = wanted[BroadcastPlace(kept, Coordinates(shape, i))];
    to = reduction.fold(to, static_cast<long double>(x[i]));
  }
  const long double count = static_cast<long double>(x.size()) / static_cast<long double>(wanted.size());
  KernelCase call(reduction.op);
  call.Attr("keepdims", int64_t{keep_dims}).In(Values(kDType<T>, shape, x));
  if (!axes.empty()) call.In(Int64s(axes));
  const auto got = call.Out(kDType<T>, result).template Get<T>();
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (std::string(reduction.op) == "ReduceMean") wanted[i] /= count;
    if (std::is_integral_v<T>) wanted[i] = std::trunc(wanted[i]);
    ASSERT_NEAR(got[i], static_cast<double>(wanted[i]),
                (std::is_same_v<T, float> ? 1e-5 : 1e-12) * (1 + std::fabs(wanted[i])))
        << reduction.op << " of " << Name(kDType<T>) << ToString(shape) << " to " << ToString(result)
        << " at " << i;
  }
}

template <typename T>
void CheckAll() {
  std::mt19937 random(6);
  for (const Reduction& reduction : kReductions) {
    // Products of integers stay small only if there are few.
    const int64_t large = std::is_integral_v<T> ? 1 : 20;
    for (int i = 0; i < 40; ++i) {
      const Shape shape = RandomShape(static_cast<int>(RandomInt(0, 5, random)), 1, 4, random);
      std::vector<int64_t> axes;
      for (size_t axis = 0; axis < shape.size(); ++axis) {
        if (RandomInt(0, 1, random)) axes.push_back(static_cast<int64_t>(axis));
      }
      CheckOne<T>(reduction, shape, axes, i % 2 == 0, random);
    }
    // Long rows, tall columns, both with an odd rest, and one single result.
    CheckOne<T>(reduction, {5, 71 * large}, {1}, false, random);
    CheckOne<T>(reduction, {67 * large, 5}, {0}, false, random);
    CheckOne<T>(reduction, {13 * large, 131}, {0}, true, random);
    CheckOne<T>(reduction, {3, 7 * large, 9, 37}, {0, 2}, false, random);
    CheckOne<T>(reduction, {3, 7, 9 * large, 37}, {1, 3}, false, random);
    CheckOne<T>(reduction, {11 * large, 100}, {}, false, random);
  }
}

TEST(Reduce, Float32) { CheckAll<float>(); }
TEST(Reduce, Float64) { CheckAll<double>(); }
TEST(Reduce, Int64) { CheckAll<int64_t>(); }
TEST(Reduce, Int32) { CheckAll<int32_t>(); }

TEST(Reduce, SumsOfManyAreAccurateAndTheSameForAnyNumberOfThreads) {
  std::mt19937 random(7);
  for (const auto& [shape, axes] : std::map<Shape, std::vector<int64_t>>{
           {{1000003}, {0}}, {{40000, 129}, {0}}, {{129, 40000}, {1}}, {{50, 300, 70}, {0, 2}}}) {
    const auto x =
        RandomValues<float>(NumElements(shape), random, 0, 1);  // KernelCase compares one thread and three
    Shape result = shape;
    for (int64_t axis : axes) result[axis] = 1;
    std::vector<double> wanted(NumElements(result));
    for (size_t i = 0; i < x.size(); ++i) wanted[BroadcastPlace(result, Coordinates(shape, i))] += x[i];
    const auto got = KernelCase("ReduceSum")
                         .In(Values(DType::kFloat32, shape, x))
                         .In(Int64s(axes))
                         .Out(DType::kFloat32, result)
                         .Get<float>();
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], wanted[i], 3e-7 * wanted[i]) << ToString(shape);
  }
}

TEST(Reduce, EmptyAxesAreAllOrNone) {
  const auto run = [](int64_t noop, const Shape& result) {
    return KernelCase("ReduceSumSquare")
        .Attr("noop_with_empty_axes", noop)
        .Attr("keepdims", int64_t{0})
        .In(Values<float>(DType::kFloat32, {2, 2}, {1, 2, 3, 4}))
        .In(Int64s({}))
        .Out(DType::kFloat32, result)
        .Get<float>();
  };
  EXPECT_THAT(run(0, {}), ::testing::ElementsAre(30));
  EXPECT_THAT(run(1, {2, 2}), ::testing::ElementsAre(1, 4, 9, 16));
}

TEST(Reduce, NothingReducesToTheNeutralElement) {
  const auto run = [](const char* op) {
    return KernelCase(op)
        .Attr("keepdims", int64_t{0})
        .In(Values<float>(DType::kFloat32, {2, 0}, {}))
        .In(Int64s({1}))
        .Out(DType::kFloat32, {2})
        .Get<float>()[1];
  };
  EXPECT_EQ(run("ReduceSum"), 0);
  EXPECT_EQ(run("ReduceProd"), 1);
  EXPECT_EQ(run("ReduceMax"), -std::numeric_limits<float>::infinity());
  EXPECT_EQ(run("ReduceMin"), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(run("ReduceMean")));
}

TEST(Reduce, NanWinsAndBoolsAreNumbers) {
  const float nan = std::nanf("");
  for (const char* op : {"ReduceMax", "ReduceMin"}) {
    for (const std::vector<float>& x : {std::vector<float>{1, nan, 2}, {nan, 1, 2}, {1, 2, nan}}) {
      EXPECT_TRUE(std::isnan(
          KernelCase(op).In(Values(DType::kFloat32, {3}, x)).Out(DType::kFloat32, {1}).Get<float>()[0]));
    }
    EXPECT_EQ(KernelCase(op)
                  .In(Values<uint8_t>(DType::kBool, {2}, {0, 1}))
                  .Out(DType::kBool, {1})
                  .Get<uint8_t>()[0],
              std::string(op) == "ReduceMax");
  }
}

TEST(Reduce, WrongAxesAndResultsAreRefused) {
  const auto run = [](int64_t axis, const Shape& result, bool known) {
    return KernelCase("ReduceSum")
        .In(Values<float>(DType::kFloat32, {2, 3}, std::vector<float>(6)))
        .In(Int64s({axis}))
        .Out(DType::kFloat32, result)
        .Error(known);
  };
  for (bool known : {false, true}) {
    EXPECT_THAT(run(2, {2, 1}, known).message(), ::testing::HasSubstr("axis 2 is outside [-2,1]"));
    EXPECT_THAT(run(0, {2, 1}, known).message(), ::testing::HasSubstr("gives [1,3], but output 0 is [2,1]"));
    EXPECT_EQ(run(1, {2, 1}, known), absl::OkStatus());
  }
}

TEST(ArgMax, TiesNanAndAxes) {
  const float nan = std::nanf("");
  const auto run = [](const char* op, int64_t last, const std::vector<float>& x, const Shape& shape,
                      int64_t axis) {
    Shape result = shape;
    result[axis] = 1;
    return KernelCase(op)
        .Attr("select_last_index", last)
        .Attr("axis", axis)
        .In(Values(DType::kFloat32, shape, x))
        .Out(DType::kInt64, result)
        .Get<int64_t>();
  };
  EXPECT_THAT(run("ArgMax", 0, {1, 3, 3, 2}, {4}, 0), ::testing::ElementsAre(1));
  EXPECT_THAT(run("ArgMax", 1, {1, 3, 3, 2}, {4}, 0), ::testing::ElementsAre(2));
  EXPECT_THAT(run("ArgMin", 0, {1, 3, 1, 2}, {4}, 0), ::testing::ElementsAre(0));
  EXPECT_THAT(run("ArgMin", 1, {1, 3, 1, 2}, {4}, 0), ::testing::ElementsAre(2));
  EXPECT_THAT(run("ArgMax", 0, {1, nan, 3, nan}, {4}, 0), ::testing::ElementsAre(1));
  EXPECT_THAT(run("ArgMin", 0, {nan, 1, 3, nan}, {4}, 0), ::testing::ElementsAre(0));
  EXPECT_THAT(run("ArgMax", 0, {1, 9, 3, 4, 5, 6}, {2, 3}, 0), ::testing::ElementsAre(1, 0, 1));
  EXPECT_THAT(run("ArgMax", 0, {1, 9, 3, 4, 5, 6}, {2, 3}, 1), ::testing::ElementsAre(1, 2));
}

TEST(CumSum, AllFourWays) {
  const auto run = [](int64_t exclusive, int64_t reverse, int64_t axis) {
    return KernelCase("CumSum")
        .Attr("exclusive", exclusive)
        .Attr("reverse", reverse)
        .In(Values<int32_t>(DType::kInt32, {2, 3}, {1, 2, 3, 4, 5, 6}))
        .In(Values<int64_t>(DType::kInt64, {}, {axis}))
        .Out(DType::kInt32, {2, 3})
        .MayLieAt(0)
        .Get<int32_t>();
  };
  EXPECT_THAT(run(0, 0, 1), ::testing::ElementsAre(1, 3, 6, 4, 9, 15));
  EXPECT_THAT(run(1, 0, 1), ::testing::ElementsAre(0, 1, 3, 0, 4, 9));
  EXPECT_THAT(run(0, 1, -1), ::testing::ElementsAre(6, 5, 3, 15, 11, 6));
  EXPECT_THAT(run(1, 1, 0), ::testing::ElementsAre(4, 5, 6, 0, 0, 0));
}

}  // namespace
}  // namespace pipec
