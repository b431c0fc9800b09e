// Attention that cuDNN computes, where it does, and what happens where it does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/device/cpu/cpu_device.h"
#include "runtime/device/cuda/cuda_device.h"
#include "tests/cuda/draw.h"
#include "tests/cuda/kernel_case.h"
#include "tests/cuda_emulation/control.h"

namespace pipec {
namespace {

struct Kind {
  const char* name;
  bool of_cudnn = true;
  Shape heads = {2, 3};
  int64_t rows = 9, columns = 9, depth = 16, width = 8;
  bool causal = false, zero_rows = false;
  Shape mask = {};  // empty: none
  bool bools = false;
};

const Kind kKinds[] = {
    {"no mask"},
    {"one head", true, {}},
    {"many axes of heads", true, {2, 1, 2, 2}},
    {"one row", true, {2}, 1, 5},
    {"more rows than columns", true, {3}, 7, 3},
    {"causal", true, {2, 3}, 9, 9, 8, 16, true},
    {"causal, zero rows", true, {2}, 9, 9, 8, 8, true, true},
    {"a mask for all", true, {2, 3}, 9, 9, 8, 8, false, false, {9, 9}},
    {"a mask of columns", true, {2, 3}, 9, 9, 8, 8, false, false, {2, 1, 1, 9}},
    {"a mask of heads", true, {2, 3}, 9, 9, 8, 8, true, false, {3, 9, 9}},
    {"a mask of samples", true, {2, 3}, 5, 9, 8, 8, false, false, {2, 1, 5, 9}},
    {"a mask of everything", true, {2, 3}, 5, 9, 8, 8, false, false, {2, 3, 5, 9}},
    {"a mask of rows", false, {2, 3}, 9, 9, 8, 8, false, false, {2, 1, 9, 1}},
    {"a mask, many axes of heads", false, {2, 2, 3}, 9, 9, 8, 8, false, false, {2, 1, 3, 1, 9}},
    {"a mask that hides rows", false, {2, 3}, 9, 9, 8, 8, false, true, {9, 9}},
    {"a mask of bools", false, {2, 3}, 9, 9, 8, 8, false, false, {9, 9}, true},
    {"rows of another depth", false, {2}, 9, 9, 12, 8},
    {"rows of another width", false, {2}, 9, 9, 8, 4},
};

KernelCase CaseOf(const Kind& kind, DType dtype, bool logs = true) {
  Random random(7);
  KernelCase c = Named("ai.pipec", "FusedAttention");
  c.spec.attributes.Set("scale", 0.3f);
  if (kind.causal) c.spec.attributes.Set("causal", int64_t{1});
  if (kind.zero_rows) c.spec.attributes.Set("zero_rows", int64_t{1});
  const auto with = [&](int64_t rows, int64_t columns) {
    Shape shape = kind.heads;
    shape.insert(shape.end(), {rows, columns});
    return shape;
  };
  AddInput(c, {dtype, with(kind.rows, kind.depth)}, random);
  AddInput(c, {dtype, with(kind.columns, kind.depth)}, random);
  AddInput(c, {dtype, with(kind.columns, kind.width)}, random);
  const DType sums = dtype == DType::kFloat64 ? dtype : DType::kFloat32;
  if (!kind.mask.empty()) {
    AddInput(c, {kind.bools ? DType::kBool : sums, kind.mask}, random);
    if (kind.bools) {
      c.spec.attributes.Set("fill", -3.0f);
    } else if (sums == DType::kFloat32) {
      // As exporters hide columns: the first is seen, so that each row has one.
      auto* const mask = reinterpret_cast<float*>(c.inputs[3].data());
      const int64_t columns = kind.mask.back();
      for (int64_t i = 0; i < NumElements(kind.mask); ++i) {
        if (i % 4 == 3 && i % columns != 0) mask[i] = std::numeric_limits<float>::lowest();
        if (i % 4 == 2 && i % columns != 0) mask[i] = -std::numeric_limits<float>::infinity();
      }
    }
  }
  Shape rows = kind.heads;
  rows.push_back(kind.rows);
  c.spec.outputs = {{{dtype, with(kind.rows, kind.width)}}, {{sums, rows}}};
  c.spec.outputs[1].present = logs;
  return c;
}

double ToleranceOf(DType dtype) {
  if (dtype == DType::kBFloat16) return 1.6e-2;
  return dtype == DType::kFloat16 ? 2e-3 : 4e-6;
}

void ExpectTheCpus(const KernelCase& c, const std::vector<std::string>& got) {
  const auto wanted = RunCase(*MakeCpuDevice(1), c);
  ASSERT_TRUE(wanted.ok()) << wanted.status();
  for (size_t k = 0; k < wanted->size(); ++k) {
    if (!c.spec.outputs[k].present) continue;
    EXPECT_EQ(
        Difference(c.spec.outputs[k].type, (*wanted)[k], got[k], ToleranceOf(c.spec.inputs[0].type.dtype)),
        "");
  }
}

TEST(CudaAttention, OfEveryKindIsTheCpus) {
  for (const Kind& kind : kKinds) {
    for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32}) {
      SCOPED_TRACE(absl::StrCat(kind.name, " of ", Name(dtype)));
      cuda_emulation::SetSeed(0);
      const cuda_emulation::LiveObjects before = cuda_emulation::CountLiveObjects();
      const KernelCase c = CaseOf(kind, dtype), without_logs = CaseOf(kind, dtype, false);
      const auto got = RunCase(*MakeCudaDevice(0), c), alone = RunCase(*MakeCudaDevice(0), without_logs);
      EXPECT_THAT(cuda_emulation::TakeReports(), testing::IsEmpty());
      EXPECT_TRUE(cuda_emulation::CountLiveObjects() == before) << "something was not given back";
      ASSERT_TRUE(got.ok()) << got.status();
      ASSERT_TRUE(alone.ok()) << alone.status();
      ExpectTheCpus(c, *got);
      // A recomputed pass may want the logarithms where the first did not.
      EXPECT_EQ((*alone)[0], (*got)[0]);
    }
  }
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

// A plan has some tens of descriptors.
TEST(CudaAttention, IsCudnnsWhereItHasIt) {
  cuda_emulation::SetSeed(0);
  const size_t before = cuda_emulation::CountLiveObjects().dnn_objects;
  for (const Kind& kind : kKinds) {
    for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
      const auto device = MakeCudaDevice(0);
      const auto kernel = device->Prepare(CaseOf(kind, dtype).spec);
      ASSERT_TRUE(kernel.ok()) << kernel.status();
      EXPECT_EQ(cuda_emulation::CountLiveObjects().dnn_objects > before + 10,
                kind.of_cudnn && SizeOf(dtype) == 2)
          << kind.name << " of " << Name(dtype);
    }
  }
}

// At load it says that it has no plan, call by call: the own kernels compute it.
TEST(CudaAttention, IsOursWhereCudnnDoesNotSupportIt) {
  const KernelCase c = CaseOf({"causal", true, {}, 2, 2, 8, 8, true}, DType::kBFloat16);
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

TEST(CudaAttention, AnErrorAtAnyCallEndsWithItsName) {
  const KernelCase c = CaseOf({"a mask", true, {2}, 3, 4, 8, 8, false, false, {3, 4}}, DType::kFloat16);
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
    EXPECT_THAT(
        said, testing::AllOf(testing::StartsWith(call), testing::HasSubstr("CUDNN_STATUS_EXECUTION_FAILED")))
        << "call " << k;
  }
  EXPECT_EQ(failed.size(), 6u) << testing::PrintToString(failed);
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
