// Transpose, Slice, Concat, Split, Expand, Tile, Pad and the reshaping ops against plain loops over
// coordinates.
#include <algorithm>
#include <numeric>

#include "tests/unit/device_cpu_movement/kernel_case.h"

namespace pipec {
namespace {

std::vector<int64_t> Iota(int64_t n) {
  std::vector<int64_t> values(n);
  std::iota(values.begin(), values.end(), 1);
  return values;
}

template <typename T>
void CheckTranspose(DType dtype, const Shape& shape, const std::vector<int64_t>& perm) {
  const std::vector<int64_t> numbers = Iota(NumElements(shape));
  const std::vector<T> x(numbers.begin(), numbers.end());
  Shape result;
  for (int64_t axis : perm) result.push_back(shape[axis]);
  std::vector<T> wanted(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const std::vector<int64_t> from = Coordinates(shape, static_cast<int64_t>(i));
    std::vector<int64_t> to;
    for (int64_t axis : perm) to.push_back(from[axis]);
    wanted[Place(result, to)] = x[i];
  }
  const auto got = KernelCase("Transpose")
                       .Attr("perm", perm)
                       .In(Values(dtype, shape, x))
                       .Out(dtype, result)
                       .template Get<T>();
  ASSERT_EQ(got, wanted) << ToString(shape) << " by " << ToString(perm);
}

template <typename T>
void CheckTransposes(DType dtype) {
  std::mt19937 random(8);
  for (int i = 0; i < 80; ++i) {
    const Shape shape =
        RandomShape(static_cast<int>(RandomInt(0, 6, random)), i % 20 == 0 ? 0 : 1, 5, random);
    std::vector<int64_t> perm(shape.size());
    std::iota(perm.begin(), perm.end(), 0);
    std::shuffle(perm.begin(), perm.end(), random);
    CheckTranspose<T>(dtype, shape, perm);
  }
  // Attention's, and matrices with odd rests of blocks.
  CheckTranspose<T>(dtype, {2, 33, 4, 16}, {0, 2, 1, 3});
  CheckTranspose<T>(dtype, {2, 3, 65, 34}, {0, 1, 3, 2});
  CheckTranspose<T>(dtype, {2, 33, 4, 16}, {0, 2, 3, 1});
  CheckTranspose<T>(dtype, {257, 131}, {1, 0});
  CheckTranspose<T>(dtype, {1000, 3}, {1, 0});
  CheckTranspose<T>(dtype, {3, 1000}, {1, 0});
}

TEST(Transpose, OneByte) { CheckTransposes<uint8_t>(DType::kUint8); }
TEST(Transpose, TwoBytes) { CheckTransposes<uint16_t>(DType::kBFloat16); }
TEST(Transpose, FourBytes) { CheckTransposes<float>(DType::kFloat32); }
TEST(Transpose, EightBytes) { CheckTransposes<int64_t>(DType::kInt64); }

TEST(Transpose, WhatIsNoPermutationIsRefused) {
  for (const std::vector<int64_t>& perm : {std::vector<int64_t>{0, 0}, {0, 2}, {1}, {-1, 0}}) {
    EXPECT_EQ(KernelCase("Transpose")
                  .Attr("perm", perm)
                  .In(Values<float>(DType::kFloat32, {1, 1}, {1}))
                  .Out(DType::kFloat32, {1, 1})
                  .Error()
                  .code(),
              absl::StatusCode::kInvalidArgument);
  }
}

// What Python's x[start:end:step] reads, but that ONNX lets a step backwards start at the first element if
// its start lies before it.
std::vector<int64_t> SliceIndices(int64_t dim, int64_t start, int64_t end, int64_t step) {
  std::vector<int64_t> indices;
  if (start < 0) start += dim;
  if (end < 0) end += dim;
  if (step > 0) {
    for (int64_t i = std::max<int64_t>(start, 0); i < std::min(end, dim); i += step) indices.push_back(i);
  } else {
    for (int64_t i = std::clamp<int64_t>(start, 0, std::max<int64_t>(dim - 1, 0));
         i < dim && i > std::max<int64_t>(end, -1); i += step)
      indices.push_back(i);
  }
  return indices;
}

TEST(Slice, AnyBoundsAndSteps) {
  std::mt19937 random(9);
  for (int i = 0; i < 300; ++i) {
    const Shape shape = RandomShape(static_cast<int>(RandomInt(1, 4, random)), 0, 6, random);
    std::vector<std::vector<int64_t>> indices;
    for (int64_t dim : shape) indices.push_back(SliceIndices(dim, 0, dim, 1));
    std::vector<int64_t> starts, ends, axes, steps;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      if (RandomInt(0, 2, random) == 0) continue;
      const int64_t rank = static_cast<int64_t>(shape.size());
      axes.push_back(RandomInt(0, 1, random) ? static_cast<int64_t>(axis)
                                             : static_cast<int64_t>(axis) - rank);
      starts.push_back(RandomInt(-8, 8, random));
      ends.push_back(RandomInt(0, 5, random) == 0 ? INT64_MAX : RandomInt(-8, 8, random));
      do steps.push_back(RandomInt(-3, 3, random));
      while (steps.back() == 0 && (steps.pop_back(), true));
      indices[axis] = SliceIndices(shape[axis], starts.back(), ends.back(), steps.back());
    }
    Shape result;
    for (const auto& list : indices) result.push_back(static_cast<int64_t>(list.size()));
    const std::vector<int64_t> x = Iota(NumElements(shape));
    std::vector<int64_t> wanted;
    for (int64_t k = 0; k < NumElements(result); ++k) {
      std::vector<int64_t> at = Coordinates(result, k);
      for (size_t axis = 0; axis < at.size(); ++axis) at[axis] = indices[axis][at[axis]];
      wanted.push_back(x[Place(shape, at)]);
    }
    const auto got = KernelCase("Slice")
                         .In(Values(DType::kInt64, shape, x))
                         .In(Int64s(starts))
                         .In(Int64s(ends))
                         .In(Int64s(axes))
                         .In(Int64s(steps))
                         .Out(DType::kInt64, result)
                         .Get<int64_t>();
    ASSERT_EQ(got, wanted) << ToString(shape) << " starts " << ToString(starts) << " ends " << ToString(ends)
                           << " axes " << ToString(axes) << " steps " << ToString(steps);

    // The gradient lands where the slice was read from. Its attributes hold normalised starts.
    std::vector<int64_t> normal;
    for (size_t k = 0; k < axes.size(); ++k) {
      const auto& list = indices[axes[k] < 0 ? axes[k] + static_cast<int64_t>(shape.size()) : axes[k]];
      normal.push_back(list.empty() ? 0 : list[0]);
    }
    std::vector<int64_t> written(x.size(), 0);
    for (int64_t value : wanted) written[value - 1] = value;
    const auto back = KernelCase("SliceGrad", "ai.pipec")
                          .Attr("shape", std::vector<int64_t>(shape.begin(), shape.end()))
                          .Attr("starts", normal)
                          .Attr("axes", axes)
                          .Attr("steps", steps)
                          .In(Values(DType::kInt64, result, wanted))
                          .Out(DType::kInt64, shape)
                          .Get<int64_t>();
    ASSERT_EQ(back, written);
  }
}

TEST(Slice, HugeStepsAndBounds) {
  for (int64_t step : {INT64_MAX, INT64_MIN}) {
    const auto got = KernelCase("Slice")
                         .In(Int64s({1, 2, 3}))
                         .In(Int64s({step > 0 ? INT64_MIN : INT64_MAX}))
                         .In(Int64s({step > 0 ? INT64_MAX : INT64_MIN}))
                         .In(Int64s({0}))
                         .In(Int64s({step}))
                         .Out(DType::kInt64, {1})
                         .Get<int64_t>();
    EXPECT_EQ(got[0], step > 0 ? 1 : 3);
  }
}

TEST(Slice, AnotherShapeThanThePlansIsRefused) {
  for (bool known : {false, true}) {
    const absl::Status status = KernelCase("Slice")
                                    .In(Int64s({1, 2, 3}))
                                    .In(Int64s({1}))
                                    .In(Int64s({3}))
                                    .Out(DType::kInt64, {1})
                                    .Error(known);
    EXPECT_THAT(status.message(), ::testing::HasSubstr("the slice is [2], but output 0 is [1]"));
  }
  const KernelCase grad = KernelCase("SliceGrad", "ai.pipec")
                              .Attr("shape", std::vector<int64_t>{4})
                              .Attr("starts", std::vector<int64_t>{2})
                              .Attr("axes", std::vector<int64_t>{0})
                              .Attr("steps", std::vector<int64_t>{2})
                              .In(Int64s({1, 2}))
                              .Out(DType::kInt64, {4});
  EXPECT_THAT(grad.Error().message(), ::testing::HasSubstr("leave axis 0 of [4]"));
}

TEST(ConcatSplit, AreEachOthersInverse) {
  std::mt19937 random(10);
  for (int i = 0; i < 60; ++i) {
    Shape shape = RandomShape(static_cast<int>(RandomInt(1, 4, random)), 1, 4, random);
    const int64_t axis = RandomInt(0, static_cast<int64_t>(shape.size()) - 1, random);
    std::vector<int64_t> sizes;
    for (int64_t k = RandomInt(1, 4, random); k > 0; --k) sizes.push_back(RandomInt(0, 4, random));
    shape[axis] = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
    const std::vector<int64_t> whole = Iota(NumElements(shape));
    KernelCase concat("Concat"), split("Split");
    concat.Attr("axis", axis - static_cast<int64_t>(shape.size()));
    split.Attr("axis", axis).In(Values(DType::kInt64, shape, whole)).In(Int64s(sizes));
    std::vector<std::vector<int64_t>> pieces;
    int64_t before = 0;
    for (int64_t size : sizes) {
      Shape piece = shape;
      piece[axis] = size;
      std::vector<int64_t> values;
      for (int64_t k = 0; k < NumElements(piece); ++k) {
        std::vector<int64_t> at = Coordinates(piece, k);
        at[axis] += before;
        values.push_back(whole[Place(shape, at)]);
      }
      before += size;
      concat.In(Values(DType::kInt64, piece, values));
      split.Out(DType::kInt64, piece);
      pieces.push_back(values);
    }
    ASSERT_EQ(concat.Out(DType::kInt64, shape).Get<int64_t>(), whole) << ToString(shape) << " axis " << axis;
    const std::vector<std::string> got = split.Run();
    for (size_t k = 0; k < pieces.size(); ++k) ASSERT_EQ(Elements<int64_t>(got[k]), pieces[k]);
  }
}

TEST(ConcatSplit, PiecesThatDoNotAddUpAreRefused) {
  EXPECT_THAT(KernelCase("Concat")
                  .Attr("axis", int64_t{0})
                  .In(Int64s({1}))
                  .In(Int64s({2}))
                  .Out(DType::kInt64, {3})
                  .Error()
                  .message(),
              ::testing::HasSubstr("the pieces have 2 in all on axis 0, the whole has 3"));
  KernelCase split("Split");
  split.In(Int64s({1, 2, 3})).In(Int64s({2, 2})).Out(DType::kInt64, {2}).Out(DType::kInt64, {1});
  EXPECT_EQ(split.Error(true).code(), absl::StatusCode::kInvalidArgument);
}

TEST(Expand, RepeatsAsBroadcasting) {
  std::mt19937 random(11);
  for (int i = 0; i < 60; ++i) {
    Shape result = RandomShape(static_cast<int>(RandomInt(0, 5, random)), 1, 4, random);
    if (i % 20 == 0) result = {3, 70000};
    Shape shape = result;
    for (int64_t& dim : shape) dim = RandomInt(0, 1, random) ? 1 : dim;
    shape.erase(shape.begin(), shape.begin() + RandomInt(0, static_cast<int64_t>(shape.size()), random));
    const std::vector<int64_t> x = Iota(NumElements(shape));
    std::vector<int64_t> wanted;
    for (int64_t k = 0; k < NumElements(result); ++k)
      wanted.push_back(x[BroadcastPlace(shape, Coordinates(result, k))]);
    std::vector<int64_t> asked(result.begin(), result.end());
    const auto got = KernelCase("Expand")
                         .In(Values(DType::kInt64, shape, x))
                         .In(Int64s(asked))
                         .Out(DType::kInt64, result)
                         .Get<int64_t>();
    ASSERT_EQ(got, wanted) << ToString(shape) << " to " << ToString(result);
  }
}

TEST(Tile, RepeatsWholes) {
  std::mt19937 random(12);
  for (int i = 0; i < 60; ++i) {
    const Shape shape = RandomShape(static_cast<int>(RandomInt(1, 4, random)), 1, 3, random);
    const Shape repeats = RandomShape(static_cast<int>(shape.size()), 1, 3, random);
    Shape result = shape;
    for (size_t k = 0; k < shape.size(); ++k) result[k] *= repeats[k];
    const std::vector<int64_t> x = Iota(NumElements(shape));
    std::vector<int64_t> wanted;
    for (int64_t k = 0; k < NumElements(result); ++k) {
      std::vector<int64_t> at = Coordinates(result, k);
      for (size_t axis = 0; axis < at.size(); ++axis) at[axis] %= shape[axis];
      wanted.push_back(x[Place(shape, at)]);
    }
    const auto got = KernelCase("Tile")
                         .In(Values(DType::kInt64, shape, x))
                         .In(Int64s({repeats.begin(), repeats.end()}))
                         .Out(DType::kInt64, result)
                         .Get<int64_t>();
    ASSERT_EQ(got, wanted);
  }
}

TEST(Pad, AddsAndCuts) {
  std::mt19937 random(13);
  for (int i = 0; i < 100; ++i) {
    const int rank = static_cast<int>(RandomInt(1, 3, random));
    const Shape shape = RandomShape(rank, 3, 5, random);
    std::vector<int64_t> pads;
    for (int k = 0; k < 2 * rank; ++k) pads.push_back(RandomInt(-2, 3, random));
    Shape result = shape;
    bool fits = true;
    for (int k = 0; k < rank; ++k) fits = (result[k] += pads[k] + pads[rank + k]) >= 0 && fits;
    if (!fits) continue;
    const std::vector<int64_t> x = Iota(NumElements(shape));
    std::vector<int64_t> wanted;
    for (int64_t place = 0; place < NumElements(result); ++place) {
      std::vector<int64_t> at = Coordinates(result, place);
      bool inside = true;
      for (int k = 0; k < rank; ++k) inside = (at[k] -= pads[k]) >= 0 && at[k] < shape[k] && inside;
      wanted.push_back(inside ? x[Place(shape, at)] : -5);
    }
    const auto got = KernelCase("Pad")
                         .In(Values(DType::kInt64, shape, x))
                         .In(Int64s(pads))
                         .In(Values<int64_t>(DType::kInt64, {}, {-5}))
                         .Out(DType::kInt64, result)
                         .Get<int64_t>();
    ASSERT_EQ(got, wanted) << ToString(shape) << " pads " << ToString(pads);
  }
}

TEST(Reshape, CopiesAndHoldsTheShapeToItsOperands) {
  const auto run = [](const char* op, const Shape& x, const Operand& second, const Shape& y,
                      int64_t axis = 1) {
    const std::vector<int64_t> values = Iota(NumElements(x));
    KernelCase call(op);
    call.In(Values(DType::kInt64, x, values));
    if (second.present) call.In(second);
    if (std::string(op) == "Flatten") call.Attr("axis", axis);
    call.Out(DType::kInt64, y).MayLieAt(0);
    if (call.Error(true).ok()) {
      EXPECT_EQ(call.Get<int64_t>(), values) << op;
    }
    return call.Error(true);
  };
  EXPECT_EQ(run("Reshape", {2, 3, 4}, Int64s({0, -1}), {2, 12}), absl::OkStatus());
  EXPECT_EQ(run("Flatten", {2, 3, 4}, Absent(), {6, 4}, -1), absl::OkStatus());
  EXPECT_EQ(run("Squeeze", {1, 3, 1}, Int64s({-1}), {1, 3}), absl::OkStatus());
  EXPECT_EQ(run("Squeeze", {1, 3, 1}, Absent(), {3}), absl::OkStatus());
  EXPECT_EQ(run("Unsqueeze", {3}, Int64s({0, -1}), {1, 3, 1}), absl::OkStatus());
  EXPECT_EQ(run("Identity", {3}, Absent(), {3}), absl::OkStatus());
  for (const absl::Status& status :
       {run("Reshape", {2, 3, 4}, Int64s({0, -1}), {3, 8}), run("Reshape", {2, 3}, Int64s({-1, -1}), {2, 3}),
        run("Reshape", {2, 3}, Int64s({0, 0, 0}), {2, 3}), run("Flatten", {2, 3, 4}, Absent(), {2, 12}, 2),
        run("Flatten", {2, 3}, Absent(), {6, 1}, 3), run("Squeeze", {1, 3, 1}, Int64s({1}), {1, 3}),
        run("Unsqueeze", {3}, Int64s({0}), {3, 1}), run("Identity", {3}, Absent(), {4})}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  }
}

}  // namespace
}  // namespace pipec
