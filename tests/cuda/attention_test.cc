// Attention that cuDNN computes, where it does, and what happens where it does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/device/cpu/cpu_device.h"
#include "runtime/device/cuda/cuda_device.h"
#include "tests/cuda/attention_kinds.h"
#include "tests/cuda/kernel_case.h"
#include "tests/cuda_emulation/control.h"

namespace pipec {
namespace {

const AttentionKind kKinds[] = {
    {"no mask"},
    {"one head", true, {}},
    {"many axes of heads", true, {2, 1, 2, 2}},
    {"one row", true, {2}, 1, 5},
    {"more rows than columns", true, {3}, 7, 3},
    {"causal", true, {2, 3}, 9, 9, 8, 16, true},
    {"causal, zero rows", true, {2}, 9, 9, 8, 8, true, true},
    {"a mask for all", true, {2, 3}, 12, 12, 8, 8, false, false, {12, 12}},
    {"a mask of columns", true, {2, 3}, 9, 12, 8, 8, false, false, {2, 1, 1, 12}},
    {"a mask of heads", true, {2, 3}, 12, 12, 8, 8, true, false, {3, 12, 12}},
    {"a mask of samples", true, {2, 3}, 5, 12, 8, 8, false, false, {2, 1, 5, 12}},
    {"a mask of everything", true, {2, 3}, 5, 12, 8, 8, false, false, {2, 3, 5, 12}},
    {"a mask of rows", false, {2, 3}, 12, 12, 8, 8, false, false, {2, 1, 12, 1}},
    {"a mask whose rows are not aligned", false, {2, 3}, 9, 9, 8, 8, false, false, {9, 9}},
    {"a mask, many axes of heads", false, {2, 2, 3}, 9, 12, 8, 8, false, false, {2, 1, 3, 1, 12}},
    {"a mask that hides rows", true, {2, 3}, 12, 12, 8, 8, false, true, {12, 12}},
    {"a mask that hides rows of some samples", true, {2, 3}, 12, 12, 8, 16, true, true, {2, 1, 12, 12}},
    {"a mask of bools", false, {2, 3}, 12, 12, 8, 8, false, false, {12, 12}, true},
    {"rows of another depth", false, {2}, 9, 9, 12, 8},
    {"rows of another width", false, {2}, 9, 9, 8, 4},
};

TEST(CudaAttention, OfEveryKindIsTheCpus) {
  for (const AttentionKind& kind : kKinds) {
    for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32}) {
      SCOPED_TRACE(absl::StrCat(kind.name, " of ", Name(dtype)));
      KernelCase c = CaseOf(kind, dtype);
      const KernelCase gradient = GradientCaseOf(kind, dtype);
      const std::vector<std::string> got = Computed(c);
      // The logarithm of a hidden row is any that is not finite.
      if (kind.zero_rows && !kind.mask.empty()) c.spec.outputs[1].present = false;
      ExpectTheCpus(c, got);
      // A recomputed pass may want the logarithms where the first did not.
      EXPECT_EQ(Computed(CaseOf(kind, dtype, false))[0], got[0]);
      ExpectTheCpus(gradient, Computed(gradient));
    }
  }
}

// Exporters hide rows by float32's lowest number, too: all columns weigh the same then.
TEST(CudaAttention, OfRowsBehindTheLowestNumberIsTheCpus) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    KernelCase c = CaseOf({"lowest", true, {2, 3}, 8, 8, 16, 16, false, false, {2, 1, 8, 8}}, dtype);
    auto* const mask = reinterpret_cast<float*>(c.inputs[3].data());
    for (const int64_t row : {1, 6, 11}) std::fill_n(mask + row * 8, 8, std::numeric_limits<float>::lowest());
    ExpectTheCpus(c, Computed(c));
  }
}

// Masks of exporters that hide nothing, whose contents are known at load: as if there were none.
TEST(CudaAttention, OfAMaskThatHidesNothingIsThatOfNone) {
  const auto without_mask = [](KernelCase c) {
    c.spec.inputs.pop_back();
    c.inputs.pop_back();
    return c;
  };
  for (const bool bools : {false, true}) {
    const AttentionKind kind{"nothing", true, {2}, 9, 9, 8, 8, false, true, {2, 9, 9}, bools};
    for (KernelCase c : {CaseOf(kind, DType::kBFloat16), GradientCaseOf(kind, DType::kBFloat16)}) {
      std::fill(c.inputs.back().begin(), c.inputs.back().end(), bools ? 1 : 0);
      const KernelCase same = without_mask(c);
      c.constants = {static_cast<int>(c.inputs.size()) - 1};
      EXPECT_TRUE(Computed(c) == Computed(same));
      EXPECT_TRUE(*RunCase(*MakeCpuDevice(1), c) == *RunCase(*MakeCpuDevice(1), same));
      c.inputs.back()[23] = bools ? 0 : 0x40;  // of one row: 2, as a float
      EXPECT_TRUE(*RunCase(*MakeCpuDevice(1), c) != *RunCase(*MakeCpuDevice(1), same));
    }
  }
}

// dP of 4 heads is what fits.
TEST(CudaAttention, OfMoreHeadsThanFitIsTheCpus) {
  const KernelCase c = GradientCaseOf({"heads", true, {2, 4}, 1, 65536, 8, 8, false, false, {2, 1, 1, 65536}},
                                      DType::kFloat16);
  ExpectTheCpus(c, Computed(c));
}

// What the call at place k says when it fails with this error; "" if nobody noticed.
std::string Says(const KernelCase& c, int64_t k, cudaError_t error, std::string* call,
                 absl::StatusOr<std::vector<std::string>>* got) {
  cuda_emulation::SetSeed(0);
  cuda_emulation::FailCall(k, error);
  *got = RunCase(*MakeCudaDevice(0), c);
  const std::vector<std::string> reports = cuda_emulation::TakeReports();
  *call = reports.empty() ? "" : reports[0].substr(0, reports[0].find(':'));
  cuda_emulation::SetSeed(0);
  return std::string(got->status().message());
}

int64_t CallsOf(const KernelCase& c) {
  cuda_emulation::SetSeed(0);
  EXPECT_TRUE(RunCase(*MakeCudaDevice(0), c).ok());
  return cuda_emulation::CallCount();
}

// Descriptors that live when a kernel is made: a plan has some tens.
size_t Descriptors(const std::vector<KernelSpec>& specs) {
  cuda_emulation::SetSeed(0);
  const size_t before = cuda_emulation::CountLiveObjects().dnn_objects;
  const auto device = MakeCudaDevice(0);
  std::vector<std::unique_ptr<Kernel>> kernels;
  for (const KernelSpec& spec : specs) {
    auto kernel = device->Prepare(spec);
    EXPECT_TRUE(kernel.ok()) << kernel.status();
    if (kernel.ok()) kernels.push_back(*std::move(kernel));
  }
  return cuda_emulation::CountLiveObjects().dnn_objects - before;
}

TEST(CudaAttention, IsCudnnsWhereItHasIt) {
  for (const AttentionKind& kind : kKinds) {
    for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
      SCOPED_TRACE(absl::StrCat(kind.name, " of ", Name(dtype)));
      const bool wanted = kind.of_cudnn && SizeOf(dtype) == 2;
      EXPECT_EQ(Descriptors({CaseOf(kind, dtype).spec}) > 10, wanted);
      EXPECT_EQ(Descriptors({GradientCaseOf(kind, dtype).spec}) > 10, wanted);
    }
  }
}

TEST(CudaAttention, GradientsThatCudnnDoesNotSupportAreOurs) {
  const AttentionKind single{"one row and column", true, {4}, 1, 1, 8, 8},
      deep{"deep", true, {4}, 9, 9, 264, 8}, long_rows{"64 MiB a head", true, {}, 4096, 8192, 8, 8},
      longer{"more", true, {}, 4096, 8193, 8, 8},
      unaligned{"logarithms of 43 heads", true, {86}, 1, 4096, 8, 8};
  for (const AttentionKind& kind : {single, deep, longer, unaligned}) {
    EXPECT_GT(Descriptors({CaseOf(kind, DType::kFloat16).spec}), 10u) << kind.name;
    EXPECT_LT(Descriptors({GradientCaseOf(kind, DType::kFloat16).spec}), 10u) << kind.name;
  }
  EXPECT_GT(Descriptors({GradientCaseOf(long_rows, DType::kFloat16).spec}), 10u);
}

// Another scale, or no logarithms, is the same plan; anything else is another.
TEST(CudaAttention, LayersAlikeShareAPlan) {
  const auto spec = [](const AttentionKind& kind, DType dtype = DType::kFloat16) {
    return CaseOf(kind, dtype).spec;
  };
  const AttentionKind causal = kKinds[5], mask = kKinds[7];
  KernelSpec scaled = spec(causal);
  scaled.attributes.Set("scale", 0.7f);
  const size_t one = Descriptors({spec(causal)});
  EXPECT_EQ(Descriptors({spec(causal), scaled, CaseOf(causal, DType::kFloat16, false).spec}), one);
  AttentionKind longer = causal, more = causal, deeper = causal, open = causal, columns = mask, heads = mask;
  longer.rows = longer.columns = 10;
  more.heads = {3, 2};
  deeper.depth = 16;
  open.causal = false;
  columns.mask = {1, 12};
  heads.mask = {3, 12, 12};
  for (const KernelSpec& other :
       {spec(longer), spec(more), spec(deeper), spec(open), spec(causal, DType::kBFloat16),
        GradientCaseOf(causal, DType::kFloat16).spec})
    EXPECT_GT(Descriptors({spec(causal), other}), one + 10);
  for (const KernelSpec& other : {spec(columns), spec(heads)})
    EXPECT_GT(Descriptors({spec(mask), other}), Descriptors({spec(mask)}) + 10);
}

// At load it says that it has no plan, call by call: the own kernels compute it.
TEST(CudaAttention, IsOursWhereCudnnDoesNotSupportIt) {
  const AttentionKind causal{"causal", true, {}, 2, 2, 8, 8, true};
  for (const KernelCase& c : {CaseOf(causal, DType::kBFloat16), GradientCaseOf(causal, DType::kBFloat16)}) {
    const cuda_emulation::LiveObjects before = cuda_emulation::CountLiveObjects();
    const int64_t calls = CallsOf(c);
    int ours = 0;
    for (int64_t k = 1; k <= calls; ++k) {
      std::string call;
      absl::StatusOr<std::vector<std::string>> got;
      Says(c, k, cudaErrorNotSupported, &call, &got);
      EXPECT_TRUE(cuda_emulation::CountLiveObjects() == before) << call << " at call " << k;
      if (!got.ok() || !absl::StartsWith(call, "cudnnBackend")) continue;
      ExpectTheCpus(c, *got);
      ++ours;
    }
    EXPECT_GT(ours, 100);
  }
}

TEST(CudaAttention, AnErrorAtAnyCallEndsWithItsName) {
  const AttentionKind masked{"a mask", true, {2}, 3, 4, 8, 8, false, false, {3, 4}};
  for (const KernelCase& c : {CaseOf(masked, DType::kFloat16), GradientCaseOf(masked, DType::kFloat16)}) {
    const cuda_emulation::LiveObjects before = cuda_emulation::CountLiveObjects();
    const int64_t calls = CallsOf(c);
    std::set<std::string> failed;
    for (int64_t k = 1; k <= calls; ++k) {
      std::string call;
      absl::StatusOr<std::vector<std::string>> got;
      const std::string said = Says(c, k, cudaErrorUnknown, &call, &got);
      EXPECT_TRUE(cuda_emulation::CountLiveObjects() == before) << call << " at call " << k;
      if (!absl::StartsWith(call, "cudnnBackend")) continue;
      failed.insert(call);
      if (absl::StrContains(call, "Destroy")) continue;
      EXPECT_THAT(said, testing::AllOf(testing::StartsWith(call),
                                       testing::HasSubstr("CUDNN_STATUS_EXECUTION_FAILED")))
          << "call " << k;
    }
    EXPECT_EQ(failed.size(), 6u) << testing::PrintToString(failed);
  }
}

// cuDNN's kernels read 16 bytes at a time, and do not look where.
TEST(CudaAttention, RefusesAnOperandThatIsNotAligned) {
  const KernelCase c = CaseOf(kKinds[0], DType::kFloat16);
  cuda_emulation::SetSeed(0);
  const auto device = MakeCudaDevice(0);
  const auto stream = device->NewStream();
  const auto kernel = device->Prepare(c.spec);
  ASSERT_TRUE(stream.ok() && kernel.ok());
  const auto memory = device->Allocate(1 << 16);
  ASSERT_TRUE(memory.ok());
  const void* const inputs[] = {*memory, *memory, *memory + 8};
  void* const outputs[] = {*memory, *memory};
  const absl::Status status = (*kernel)->Launch(**stream, {inputs, outputs, nullptr, *memory});
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("16 bytes of alignment"));
  EXPECT_THAT(cuda_emulation::TakeReports(), testing::IsEmpty());
}

}  // namespace
}  // namespace pipec
