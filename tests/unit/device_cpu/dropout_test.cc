#include <array>
#include <cmath>

#include "kernel_call.h"
#include "runtime/device/cpu/kernels/philox.h"

namespace pipec {
namespace {

// Philox4x32-10 of one counter, from the paper.
std::array<uint32_t, 4> Reference(std::array<uint32_t, 4> counter, uint32_t key0, uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = 0xD2511F53ull * counter[0], p1 = 0xCD9E8D57ull * counter[2];
    counter = {static_cast<uint32_t>(p1 >> 32) ^ counter[1] ^ key0, static_cast<uint32_t>(p1),
               static_cast<uint32_t>(p0 >> 32) ^ counter[3] ^ key1, static_cast<uint32_t>(p0)};
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return counter;
}

TEST(Philox, GivesTheKnownAnswers) {
  // Random123's kat_vectors, philox4x32 10.
  struct Case {
    std::array<uint32_t, 4> counter;
    uint64_t key;
    std::array<uint32_t, 4> words;
  };
  const std::vector<Case> cases = {{{0, 0, 0, 0}, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
                                   {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
                                    0xffffffffffffffff,
                                    {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
                                   {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                                    0x299f31d0a4093822,
                                    {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}};
  for (const Case& c : cases) {
    uint32_t words[4 * cpu::kPhiloxLanes];
    cpu::Philox(c.counter[0], c.counter[1], c.counter[2], c.counter[3], c.key, words);
    for (uint32_t k = 0; k < cpu::kPhiloxLanes; ++k) {
      const auto wanted = Reference({c.counter[0] + k, c.counter[1], c.counter[2], c.counter[3]},
                                    static_cast<uint32_t>(c.key), static_cast<uint32_t>(c.key >> 32));
      if (k == 0) {
        EXPECT_EQ(wanted, c.words);
      }
      for (int w = 0; w < 4; ++w) ASSERT_EQ(words[4 * k + w], wanted[w]);
    }
  }
}

KernelCall DropoutOf(const Tensor& x, float ratio, int64_t batch_axis) {
  KernelCall call("Dropout", kHelpers);
  call.In(x).Attr("ratio", ratio).Attr("key", int64_t{77}).Attr("batch_axis", batch_axis);
  call.scalars.seed = 0x123456789abcdef0;
  call.scalars.step = 5;
  call.scalars.first_sample = 12;
  return call;
}

TEST(Dropout, DrawsByTheContract) {
  const Shape shape = {3, 2, 37};
  for (int64_t batch_axis : {-1, 0, 1, 2}) {
    const Tensor x = Random(DType::kFloat32, shape, 1);
    std::vector<double> y, mask;
    for (int64_t i = 0; i < x.type.elements(); ++i) {
      const std::array<int64_t, 3> index = {i / 74, i / 37 % 2, i % 37};
      int64_t element = 0;
      for (int axis = 0; axis < 3; ++axis) {
        if (axis != batch_axis) element = element * shape[axis] + index[axis];
      }
      const int64_t sample = batch_axis < 0 ? 0 : 12 + index[batch_axis];
      const auto words = Reference({static_cast<uint32_t>(element / 4), 77, 5, static_cast<uint32_t>(sample)},
                                   0x9abcdef0, 0x12345678);
      mask.push_back(words[element % 4] >= 0.25 * 4294967296.0);
      y.push_back(mask.back() * Values(x)[i] * static_cast<float>(1 / 0.75));
    }
    KernelCall call = DropoutOf(x, 0.25, batch_axis);
    call.Out(DType::kFloat32, shape).Out(DType::kBool, shape);
    ExpectNear(call.Get(0), y, 1e-6);
    EXPECT_EQ(call.Get(1), mask);
    KernelCall grad("DropoutGrad", kHelpers);
    grad.In(x).Attr("ratio", 0.25f).Attr("key", int64_t{77}).Attr("batch_axis", batch_axis);
    grad.Out(DType::kFloat32, shape);
    grad.scalars = call.scalars;
    EXPECT_EQ(grad.Get(), call.Get(0));
    EXPECT_EQ(grad.Get(), grad.At(0).Threads(2).Get());
  }
}

TEST(Dropout, DependsOnSampleNotOnMicrobatchOrThreads) {
  const Tensor whole = Random(DType::kFloat64, {4, 3001}, 1);
  const std::vector<double> values = Values(whole);
  KernelCall call = DropoutOf(whole, 0.5, 0);
  const std::vector<double> wanted = call.Out(DType::kFloat64, {4, 3001}).Get();
  EXPECT_EQ(wanted, call.Threads(3).Get());
  const Tensor last = Make(DType::kFloat64, {1, 3001}, {values.end() - 3001, values.end()});
  KernelCall part = DropoutOf(last, 0.5, 0);
  part.scalars.first_sample += 3;
  EXPECT_EQ(part.Out(DType::kFloat64, {1, 3001}).Get(),
            std::vector<double>(wanted.end() - 3001, wanted.end()));
}

Tensor Reshaped(Tensor tensor, const Shape& shape) {
  tensor.type.shape = shape;
  return tensor;
}

// [B,T,H] and [B*T,H] hold the same samples; and so do [T,B,H] and [T,B*2,H/2].
TEST(Dropout, SeesTheSamplesOfAMergedAxis) {
  const Tensor whole = Random(DType::kFloat32, {3, 5, 14}, 1), merged = Reshaped(whole, {15, 14});
  const std::vector<double> wanted = DropoutOf(whole, 0.5, 0).Out(DType::kFloat32, {3, 5, 14}).Get();
  KernelCall call = DropoutOf(merged, 0.5, 0);
  EXPECT_EQ(call.Attr("samples", int64_t{3}).Out(DType::kFloat32, {15, 14}).Get(), wanted);
  const Tensor second = Reshaped(whole, {5, 3, 14}), halves = Reshaped(whole, {5, 6, 7});
  KernelCall split = DropoutOf(halves, 0.5, 1);
  EXPECT_EQ(split.Attr("samples", int64_t{3}).Out(DType::kFloat32, {5, 6, 7}).Get(),
            DropoutOf(second, 0.5, 1).Out(DType::kFloat32, {5, 3, 14}).Get());
  KernelCall odd = DropoutOf(merged, 0.5, 0);
  EXPECT_THAT(odd.Attr("samples", int64_t{4}).Out(DType::kFloat32, {15, 14}).Error(),
              testing::HasSubstr("axis 0 of size 15 does not hold 4 samples"));
}

TEST(Dropout, KeepsItsRate) {
  const int64_t n = 200000;
  for (float ratio : {0.0f, 0.1f, 0.5f, 0.9f, 1.0f}) {
    const Tensor x = Make(DType::kFloat32, {1, n}, std::vector<double>(n, 1));
    KernelCall call = DropoutOf(x, ratio, 0);
    const std::vector<double> y = call.Out(DType::kFloat32, {1, n}).Get();
    double kept = 0;
    for (double value : y) kept += value != 0;
    const double deviation = std::sqrt(n * ratio * (1.0 - ratio));
    EXPECT_NEAR(kept, n * (1.0 - ratio), 4 * deviation) << ratio;
  }
  const Tensor inf = Make(DType::kFloat32, {1}, {std::numeric_limits<double>::infinity()});
  EXPECT_THAT(DropoutOf(inf, 1, 0).Out(DType::kFloat32, {1}).Get(), testing::ElementsAre(0));
  EXPECT_THAT(DropoutOf(inf, 2, 0).Out(DType::kFloat32, {1}).Error(), testing::HasSubstr("ratio is 2"));
}

TEST(Dropout, PassesThroughInEvaluation) {
  const Tensor x = Random(DType::kFloat32, {2, 50}, 1);
  KernelCall call = DropoutOf(x, 0.5, 0);
  call.Out(DType::kFloat32, {2, 50}).Out(DType::kBool, {2, 50});
  call.scalars.training = false;
  EXPECT_EQ(call.Get(0), Values(x));
  EXPECT_EQ(call.Get(1), std::vector<double>(100, 1));
}

}  // namespace
}  // namespace pipec
