// Ops that read or write places named by their operands, and ops that make tensors from numbers.
#include "tests/unit/device_cpu_movement/kernel_case.h"

namespace pipec {
namespace {

template <typename I>
void CheckGather(DType index_type) {
  std::mt19937 random(14);
  for (int i = 0; i < 80; ++i) {
    const Shape data = RandomShape(static_cast<int>(RandomInt(1, 4, random)), 1, 5, random);
    const Shape indices =
        RandomShape(static_cast<int>(RandomInt(0, 3, random)), i % 20 == 0 ? 0 : 1, 4, random);
    const int64_t axis = RandomInt(0, static_cast<int64_t>(data.size()) - 1, random), dim = data[axis];
    std::vector<I> index(NumElements(indices));
    for (I& value : index) value = static_cast<I>(RandomInt(-dim, dim - 1, random));
    Shape shape(data.begin(), data.begin() + axis);
    shape.insert(shape.end(), indices.begin(), indices.end());
    shape.insert(shape.end(), data.begin() + axis + 1, data.end());
    const auto x = RandomValues<float>(NumElements(data), random),
               dy = RandomValues<float>(NumElements(shape), random);
    std::vector<float> wanted(NumElements(shape)), gradient(NumElements(data), 0);
    for (int64_t place = 0; place < NumElements(shape); ++place) {
      const std::vector<int64_t> at = Coordinates(shape, place);
      const std::vector<int64_t> inner(at.begin() + axis,
                                       at.begin() + axis + static_cast<int64_t>(indices.size()));
      const I value = index[Place(indices, inner)];
      std::vector<int64_t> from(at.begin(), at.begin() + axis);
      from.push_back(value < 0 ? value + dim : value);
      from.insert(from.end(), at.begin() + axis + static_cast<int64_t>(indices.size()), at.end());
      wanted[place] = x[Place(data, from)];
      gradient[Place(data, from)] += dy[place];  // place by place: in the order of the indices
    }
    const auto got = KernelCase("Gather")
                         .Attr("axis", axis - static_cast<int64_t>(data.size()))
                         .In(Values(DType::kFloat32, data, x))
                         .In(Values(index_type, indices, index))
                         .Out(DType::kFloat32, shape)
                         .template Get<float>();
    ASSERT_EQ(got, wanted) << ToString(data) << " by " << ToString(indices) << " on axis " << axis;
    const auto back = KernelCase("GatherGrad", "ai.pipec")
                          .Attr("axis", axis)
                          .Attr("shape", std::vector<int64_t>(data.begin(), data.end()))
                          .In(Values(DType::kFloat32, shape, dy))
                          .In(Values(index_type, indices, index))
                          .Out(DType::kFloat32, data)
                          .template Get<float>();
    ASSERT_EQ(back, gradient);  // bit for bit
  }
}

TEST(Gather, WithItsGradient) {
  CheckGather<int64_t>(DType::kInt64);
  CheckGather<int32_t>(DType::kInt32);
}

TEST(Gather, AnEmbeddingWithManyEqualIndices) {
  std::mt19937 random(15);
  const int64_t tokens = 700, words = 5, width = 300;
  const auto dy = RandomValues<float>(tokens * width, random);
  std::vector<int64_t> index(tokens);
  for (int64_t& value : index) value = RandomInt(0, words - 1, random);
  std::vector<float> wanted(words * width, 0);
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t c = 0; c < width; ++c) wanted[index[t] * width + c] += dy[t * width + c];
  }
  EXPECT_EQ(KernelCase("GatherGrad", "ai.pipec")
                .Attr("shape", std::vector<int64_t>{words, width})
                .In(Values(DType::kFloat32, {tokens, width}, dy))
                .In(Int64s(index))
                .Out(DType::kFloat32, {words, width})
                .Get<float>(),
            wanted);
}

TEST(Gather, AnIndexOutOfRangeIsNamedWithItsPlace) {
  for (int64_t wrong : {3, -4}) {
    const absl::Status gather =
        KernelCase("Gather").In(Int64s({1, 2, 3})).In(Int64s({0, wrong})).Out(DType::kInt64, {2}).Error();
    const absl::Status grad = KernelCase("GatherGrad", "ai.pipec")
                                  .Attr("shape", std::vector<int64_t>{3})
                                  .In(Values<float>(DType::kFloat32, {2}, {1, 1}))
                                  .In(Int64s({0, wrong}))
                                  .Out(DType::kFloat32, {3})
                                  .Error();
    for (const absl::Status& status : {gather, grad}) {
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_EQ(status.message(), absl::StrCat("index ", wrong, " at position 1 is outside [-3,2]"));
    }
  }
}

TEST(OneHot, AnyAxisAndIndicesOutOfRangeAreOff) {
  const auto run = [](int64_t axis, const Shape& result) {
    return KernelCase("OneHot")
        .Attr("axis", axis)
        .In(Int64s({1, -1, 3, -4}))
        .In(Values<int64_t>(DType::kInt64, {}, {3}))
        .In(Values<float>(DType::kFloat32, {2}, {2, 5}))
        .Out(DType::kFloat32, result)
        .Get<float>();
  };
  EXPECT_THAT(run(-1, {4, 3}), ::testing::ElementsAre(2, 5, 2, 2, 2, 5, 2, 2, 2, 2, 2, 2));
  EXPECT_THAT(run(0, {3, 4}), ::testing::ElementsAre(2, 2, 2, 2, 5, 2, 2, 2, 2, 5, 2, 2));
}

TEST(Trilu, KeepsOneTriangle) {
  std::mt19937 random(16);
  for (int i = 0; i < 60; ++i) {
    const Shape shape = {RandomInt(1, 3, random), RandomInt(1, 5, random), RandomInt(0, 5, random)};
    const int64_t k = i == 0 ? INT64_MAX : i == 1 ? INT64_MIN : RandomInt(-6, 6, random), upper = i % 2;
    const auto x = RandomValues<float>(NumElements(shape), random);
    std::vector<float> wanted = x;
    for (int64_t place = 0; place < NumElements(shape); ++place) {
      const std::vector<int64_t> at = Coordinates(shape, place);
      const int64_t diagonal = at[2] - at[1];
      if (upper ? diagonal < k : diagonal > k) wanted[place] = 0;
    }
    ASSERT_EQ(KernelCase("Trilu")
                  .Attr("upper", upper)
                  .In(Values(DType::kFloat32, shape, x))
                  .In(Values<int64_t>(DType::kInt64, {}, {k}))
                  .Out(DType::kFloat32, shape)
                  .MayLieAt(0)
                  .Get<float>(),
              wanted)
        << ToString(shape) << " k " << k;
  }
}

TEST(Generate, Range) {
  const auto run = [](int64_t start, int64_t limit, int64_t delta, int64_t n) {
    const auto scalar = [](int64_t value) { return Values<int64_t>(DType::kInt64, {}, {value}); };
    return KernelCase("Range").In(scalar(start)).In(scalar(limit)).In(scalar(delta)).Out(DType::kInt64, {n});
  };
  EXPECT_THAT(run(1, 8, 3, 3).Get<int64_t>(), ::testing::ElementsAre(1, 4, 7));
  EXPECT_THAT(run(5, 0, -2, 3).Get<int64_t>(), ::testing::ElementsAre(5, 3, 1));
  EXPECT_THAT(run(5, 0, 2, 0).Get<int64_t>(), ::testing::ElementsAre());
  for (bool known : {false, true}) {
    EXPECT_EQ(run(1, 8, 3, 4).Error(known).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(run(1, 8, 0, 4).Error(known).code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(Generate, ShapeSizeAndConstants) {
  const Operand x = Values(DType::kFloat32, {2, 3, 4}, std::vector<float>(24));
  EXPECT_THAT(KernelCase("Shape").In(x).Out(DType::kInt64, {3}).Get<int64_t>(),
              ::testing::ElementsAre(2, 3, 4));
  EXPECT_THAT(KernelCase("Shape")
                  .Attr("start", int64_t{-2})
                  .Attr("end", int64_t{-1})
                  .In(x)
                  .Out(DType::kInt64, {1})
                  .Get<int64_t>(),
              ::testing::ElementsAre(3));
  EXPECT_THAT(KernelCase("Size").In(x).Out(DType::kInt64, {}).Get<int64_t>(), ::testing::ElementsAre(24));
  const auto one = std::make_shared<const std::string>("\x07\x00", 2);
  EXPECT_THAT(KernelCase("ConstantOfShape")
                  .Attr("value", TensorLiteral{{DType::kInt16, {1}}, one})
                  .In(Int64s({2, 2}))
                  .Out(DType::kInt16, {2, 2})
                  .Get<int16_t>(),
              ::testing::ElementsAre(7, 7, 7, 7));
  EXPECT_THAT(KernelCase("ConstantOfShape").In(Int64s({2})).Out(DType::kFloat32, {2}).Get<float>(),
              ::testing::ElementsAre(0, 0));
  EXPECT_THAT(KernelCase("Constant")
                  .Attr("value_ints", std::vector<int64_t>{4, 5})
                  .Out(DType::kInt64, {2})
                  .Get<int64_t>(),
              ::testing::ElementsAre(4, 5));
  EXPECT_THAT(KernelCase("Constant").Attr("value_float", 2.5f).Out(DType::kFloat32, {}).Get<float>(),
              ::testing::ElementsAre(2.5f));
}

}  // namespace
}  // namespace pipec
