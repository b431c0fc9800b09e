// The own kernels of attention, which go over tiles of 64 x 64 scores, of float64 of 32 x 32, in slices of 32 numbers
// of a row: what crosses the ends of those, and what one tile must know of another.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/device/cpu/cpu_device.h"
#include "runtime/device/cuda/cuda_device.h"
#include "tests/cuda/attention_kinds.h"
#include "tests/cuda_emulation/control.h"

namespace pipec {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The gradient of a pass that the CPU made.
KernelCase GradientOf(const KernelCase& pass, const AttentionKind& kind) {
  KernelCase c = GradientCaseOf(kind, pass.spec.inputs[0].type.dtype);
  const auto results = RunCase(*MakeCpuDevice(1), pass);
  EXPECT_TRUE(results.ok()) << results.status();
  if (!results.ok()) return c;
  c.spec.attributes = pass.spec.attributes;
  std::copy(pass.inputs.begin(), pass.inputs.begin() + 3, c.inputs.begin() + 1);
  std::copy(results->begin(), results->end(), c.inputs.begin() + 4);
  if (pass.inputs.size() > 3) c.inputs[6] = pass.inputs[3];
  return c;
}

// Forward and back; gives O.
std::string ExpectTheCpusBothWays(const KernelCase& pass, const AttentionKind& kind, uint64_t seed = 0) {
  const KernelCase gradient = GradientOf(pass, kind);
  const std::vector<std::string> got = Computed(pass, seed);
  const double growth = SizeOf(pass.spec.inputs[0].type.dtype) > 2 ? 4 : 2;  // of 16 bits weights are, too
  ExpectTheCpus(pass, got, growth);
  ExpectTheCpus(gradient, Computed(gradient, seed), growth);
  return got[0];
}

const AttentionKind kKinds[] = {
    {"one more than a tile", false, {}, 65, 65, 33, 65},
    {"one less than a tile", false, {}, 63, 63, 31, 63},
    {"whole tiles", false, {2}, 128, 64, 64, 64},
    {"a whole tile, causal", false, {}, 64, 64, 32, 64, true},
    {"several tiles, causal", false, {2}, 150, 150, 20, 12, true},
    {"deep rows", false, {}, 5, 70, 140, 3},
    {"wide rows", false, {2}, 70, 5, 3, 140},
    {"many rows", false, {}, 200, 3, 4, 4},
    {"many columns", false, {}, 3, 200, 4, 4},
    {"a mask of bools of columns", false, {}, 70, 130, 40, 72, false, false, {130}, true},
    {"a mask of bools", false, {2}, 70, 130, 9, 8, false, false, {70, 130}, true},
    {"a mask of bools, causal", false, {3}, 130, 130, 8, 9, true, false, {3, 1, 130}, true},
    {"a mask of bools of rows", false, {2}, 130, 70, 8, 9, false, false, {2, 130, 1}, true},
    {"a mask", false, {2, 1, 2}, 70, 67, 4, 4, false, false, {2, 1, 1, 70, 67}},
    {"a mask, causal", false, {2}, 67, 67, 4, 4, true, false, {67, 67}},
    {"a mask that hides rows", false, {2}, 70, 70, 5, 4, false, true, {2, 70, 70}},
};

TEST(CudaAttentionTiles, OfEveryKindAreTheCpus) {
  for (const AttentionKind& kind : kKinds) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
      SCOPED_TRACE(absl::StrCat(kind.name, " of ", Name(dtype)));
      ExpectTheCpusBothWays(CaseOf(kind, dtype), kind);
    }
  }
}

TEST(CudaAttentionTiles, OfSixteenBitsAreTheCpus) {
  for (const AttentionKind& kind : kKinds) {
    if (kind.depth % 8 == 0 && kind.width % 8 == 0 && !kind.bools) continue;  // cuDNN's
    for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
      SCOPED_TRACE(absl::StrCat(kind.name, " of ", Name(dtype)));
      ExpectTheCpusBothWays(CaseOf(kind, dtype), kind);
    }
  }
}

// Sums go in an order that nothing but shapes decides.
TEST(CudaAttentionTiles, RepeatBitByBit) {
  const AttentionKind kind{"two tiles", false, {2}, 70, 70, 40, 68, true};
  const KernelCase pass = CaseOf(kind, DType::kFloat32), gradient = GradientOf(pass, kind);
  const std::vector<std::string> wanted = Computed(pass), wanted_back = Computed(gradient);
  for (uint64_t seed = 1; seed < 4; ++seed) {
    EXPECT_TRUE(Computed(pass, seed) == wanted);
    EXPECT_TRUE(Computed(gradient, seed) == wanted_back);
  }
}

std::string Floats(const TensorType& type, const std::function<double(int64_t)>& of) {
  std::string numbers;
  for (int64_t i = 0; i < type.elements(); ++i) {
    const double number = of(i);
    numbers.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  return Converted(numbers, type);
}

// One head of 200 rows and columns, whose added mask is of(row, column). Its products are small multiples of 1/16, so
// that scores are exact even where they are large.
template <typename Of>
KernelCase Masked(const AttentionKind& kind, DType dtype, const Of& of) {
  KernelCase c = CaseOf(kind, dtype);
  c.spec.attributes.Set("scale", 0.25f);
  for (const int k : {0, 1})
    c.inputs[k] = Floats(c.spec.inputs[k].type, [&](int64_t i) { return (i * (7 + 4 * k) % 9 - 4) / 4.0; });
  c.inputs[3] = Floats(c.spec.inputs[3].type, [&](int64_t i) { return of(i / 200, i % 200); });
  return c;
}

AttentionKind MaskedKind(bool causal, bool zero_rows = false) {
  return {"masked", false, {}, 200, 200, 4, 4, causal, zero_rows, {200, 200}};
}

// The largest so far grows with every tile, by little or by so much that what came before is nothing; or it comes
// first.
TEST(CudaAttentionTiles, TakeBackWhatALargerScoreMakesSmaller) {
  for (const double step : {1.0 / 64, 0.125, 4.0, -1.0 / 64, -0.125, -4.0}) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
      SCOPED_TRACE(absl::StrCat(step, " of ", Name(dtype)));
      const AttentionKind kind = MaskedKind(step == 0.125);
      ExpectTheCpusBothWays(Masked(kind, dtype, [&](int64_t, int64_t column) { return step * column; }),
                            kind);
    }
  }
}

// A row may see nothing in its first tiles, in its last, or in none at all.
TEST(CudaAttentionTiles, HiddenInSomeTilesAreTheCpus) {
  const auto hidden = [](int64_t row, int64_t column) {
    constexpr int64_t kSeen[][2] = {{0, 200}, {64, 200},  {128, 200}, {0, 64},
                                    {0, 1},   {199, 200}, {70, 71},   {0, 0}};
    const auto& [first, end] = kSeen[row % 8];
    return column >= first && column < end ? 0.0 : -kInfinity;
  };
  for (const bool zero_rows : {false, true}) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
      SCOPED_TRACE(absl::StrCat(zero_rows ? "zeros of " : "NaN of ", Name(dtype)));
      const AttentionKind kind = MaskedKind(false, zero_rows);
      const std::string o = ExpectTheCpusBothWays(Masked(kind, dtype, hidden), kind);
      if (dtype != DType::kFloat32) continue;
      const auto* const results = reinterpret_cast<const float*>(o.data());
      EXPECT_TRUE(zero_rows ? results[7 * 4] == 0 : std::isnan(results[7 * 4]));
    }
  }
}

// Scores that are no numbers make all of their row none, wherever they stand in it; other rows know nothing of it.
TEST(CudaAttentionTiles, ScoresThatAreNoNumbersStayInTheirRow) {
  for (const float what : {kInfinity, std::nanf("")}) {
    for (const bool zero_rows : {false, true}) {
      const auto mask = [&](int64_t row, int64_t column) {
        constexpr int64_t kColumns[] = {0, 63, 64, 130, 199, -1};
        return column == kColumns[row % 6] ? what : row % 3 == 0 && column < 64 ? -kInfinity : 0.0;
      };
      SCOPED_TRACE(absl::StrCat(what, zero_rows ? ", zeros" : ""));
      const AttentionKind kind = MaskedKind(false, zero_rows);
      const KernelCase pass = Masked(kind, DType::kFloat32, mask);
      const std::vector<std::string> got = Computed(pass);
      ExpectTheCpus(pass, got);
      const auto* const results = reinterpret_cast<const float*>(got[0].data());
      for (int64_t row = 0; row < 200; ++row)
        EXPECT_EQ(std::isfinite(results[row * 4]), zero_rows || row % 6 == 5) << row;
    }
  }
}

// Operands that no 16 bytes can be loaded from at once, though their rows could.
TEST(CudaAttentionTiles, OfAnyAddressAreTheSame) {
  const AttentionKind kind{"wide", false, {2}, 70, 70, 40, 68, false, false, {70, 70}};
  const KernelCase pass = CaseOf(kind, DType::kFloat32);
  for (const KernelCase& c : {pass, GradientOf(pass, kind)}) {
    const std::vector<std::string> wanted = Computed(c);
    cuda_emulation::SetSeed(0);
    const auto device = MakeCudaDevice(0);
    const auto stream = device->NewStream();
    const auto kernel = device->Prepare(c.spec);
    ASSERT_TRUE(stream.ok() && kernel.ok());
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    for (const std::string& contents : c.inputs) {
      std::byte* const memory = *device->Allocate(contents.size() + sizeof(float)) + sizeof(float);
      ASSERT_TRUE(device->CopyToDevice(**stream, memory, contents.data(), contents.size()).ok());
      inputs.push_back(memory);
    }
    for (const KernelOperand& operand : c.spec.outputs)
      outputs.push_back(*device->Allocate(operand.type.bytes() + sizeof(float)) + sizeof(float));
    std::byte* const workspace = *device->Allocate((*kernel)->workspace_bytes());
    ASSERT_TRUE((*kernel)->Launch(**stream, {inputs.data(), outputs.data(), nullptr, workspace}).ok());
    for (size_t k = 0; k < outputs.size(); ++k) {
      std::string got(wanted[k].size(), '\0');
      ASSERT_TRUE(device->CopyToHost(**stream, got.data(), outputs[k], got.size()).ok());
      ASSERT_TRUE((*stream)->Synchronize(absl::Now() + absl::Minutes(1)).ok());
      EXPECT_TRUE(got == wanted[k]) << k;
    }
    EXPECT_THAT(cuda_emulation::TakeReports(), testing::IsEmpty());
  }
}

// The way back keeps a number for each row, and nobody any that there are more of.
TEST(CudaAttentionTiles, KeepNoScores) {
  const auto device = MakeCudaDevice(0);
  for (const int64_t n : {1, 100, 100000}) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
      const AttentionKind kind{"short", false, {3}, 1, 1, 4, 4};
      KernelSpec pass = CaseOf(kind, dtype).spec, back = GradientCaseOf(kind, dtype).spec;
      for (KernelSpec* spec : {&pass, &back}) {
        for (auto* operands : {&spec->inputs, &spec->outputs}) {
          for (KernelOperand& operand : *operands) operand.type.shape[1] = n;
        }
      }
      const auto kernel = device->Prepare(pass), kernel_back = device->Prepare(back);
      ASSERT_TRUE(kernel.ok() && kernel_back.ok());
      EXPECT_EQ((*kernel)->workspace_bytes(), 0);
      EXPECT_EQ((*kernel_back)->workspace_bytes(), 3 * n * SizeOf(dtype));
    }
  }
}

// However many tiles there are.
TEST(CudaAttentionTiles, AreFewLaunches) {
  const AttentionKind kind{"tiles", false, {2}, 130, 130, 70, 4};
  Computed(CaseOf(kind, DType::kFloat32));
  EXPECT_EQ(cuda_emulation::CallCounts()["cudaLaunchKernel"], 1);
  Computed(GradientCaseOf(kind, DType::kFloat32));
  EXPECT_EQ(cuda_emulation::CallCounts()["cudaLaunchKernel"], 3);
}

TEST(CudaAttentionTiles, OfMoreThanAGridHasAreRefused) {
  const auto device = MakeCudaDevice(0);
  const auto refused = [&](int64_t heads, int64_t rows, int64_t depth) {
    KernelSpec spec = CaseOf({"small", false, {1}, 1, 1, 1, 1}, DType::kFloat32).spec;
    spec.inputs[0].type.shape = {heads, rows, depth};
    spec.inputs[1].type.shape = {heads, 1, depth};
    spec.inputs[2].type.shape = {heads, 1, 1};
    spec.outputs[0].type.shape = {heads, rows, 1};
    spec.outputs[1].type.shape = {heads, rows};
    return absl::IsUnimplemented(device->Prepare(spec).status());
  };
  EXPECT_FALSE(refused(int64_t{1} << 30, 1, 1));
  EXPECT_FALSE(refused(1, 1, 1 << 20));
  EXPECT_TRUE(refused(int64_t{1} << 31, 1, 1));
  EXPECT_TRUE(refused(int64_t{1} << 20, 1 << 11, 1));
  EXPECT_TRUE(refused(1, 1, (1 << 20) + 1));
}

}  // namespace
}  // namespace pipec
