// The CUDA device beside its kernels: memory, the scalars of a step, what a kernel finds in its operands, a host
// without a GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/base/status.h"
#include "runtime/device/cuda/cuda_device.h"
#include "tests/cuda/kernel_case.h"
#include "tests/cuda_emulation/control.h"

namespace pipec {
namespace {

using testing::HasSubstr;

TEST(CudaDevice, SaysThatThereIsNoGpu) {
  cuda_emulation::SetDevices(1);
  const auto stream = MakeCudaDevice(3)->NewStream();
  EXPECT_EQ(stream.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(stream.status().message(), "there is no GPU 3: this host has 1");
  cuda_emulation::SetSeed(0);
  cuda_emulation::FailCall(1, cudaErrorNoDevice);
  const auto memory = MakeCudaDevice(0)->Allocate(8);
  EXPECT_EQ(memory.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(memory.status().message(), HasSubstr("there is no GPU"));
}

TEST(CudaDevice, NamesAnOpThatItHasNoKernelFor) {
  KernelSpec spec{.op = "StringNormalizer", .name = "n"};
  const auto kernel = MakeCudaDevice(0)->Prepare(spec);
  EXPECT_EQ(kernel.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(kernel.status().message(), HasSubstr("no kernel for StringNormalizer of domain '' (node 'n')"));
}

// Two rows of three classes; label 1 of row 0 is right.
absl::Status CountWithLabels(std::vector<int64_t> labels, int64_t valid_samples) {
  KernelCase c;
  c.spec = {.op = "CountCorrect", .domain = "ai.pipec", .name = "count"};
  c.spec.inputs = {{{DType::kFloat32, {2, 3}}}, {{DType::kInt64, {2}}}};
  c.spec.outputs = {{{DType::kInt64, {}}}, {{DType::kInt64, {}}}};
  c.inputs = {std::string(24, '\0'), std::string(reinterpret_cast<const char*>(labels.data()), 16)};
  c.scalars.valid_samples = valid_samples;
  return RunCase(*MakeCudaDevice(0), c).status();
}

TEST(CudaDevice, ALabelOutOfRangeIsNamedOnceTheStreamIsDone) {
  cuda_emulation::SetSeed(1);
  EXPECT_TRUE(CountWithLabels({1, 2}, 2).ok());
  for (int64_t label : {-1, 3}) {
    const absl::Status status = CountWithLabels({1, label}, 2);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(), absl::StrCat("node 'count' (CountCorrect): label ", label,
                                             " at flat position 1 is not in [0, 3)"));
  }
  EXPECT_TRUE(CountWithLabels({1, 7}, 1).ok()) << "padding counts for nothing";
  EXPECT_THAT(cuda_emulation::TakeReports(), testing::IsEmpty());
}

TEST(CudaDevice, ADepthThatIsNotThatOfTheResultIsNamed) {
  cuda_emulation::SetSeed(1);
  for (const int64_t depth : {3, 4}) {
    KernelCase c;
    c.spec = {.op = "OneHot", .name = "n"};
    c.spec.inputs = {{{DType::kInt64, {2}}}, {{DType::kInt64, {}}}, {{DType::kInt64, {2}}}};
    c.spec.outputs = {{{DType::kInt64, {2, 3}}}};
    c.inputs = {std::string(16, '\0'), std::string(reinterpret_cast<const char*>(&depth), 8),
                std::string(16, '\0')};
    const absl::Status status = RunCase(*MakeCudaDevice(0), c).status();
    if (depth == 3) {
      EXPECT_TRUE(status.ok()) << status;
      continue;
    }
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(),
              "node 'n' (OneHot): depth 4 at flat position 0 is not 3, as output 0 has it");
  }
  EXPECT_THAT(cuda_emulation::TakeReports(), testing::IsEmpty());
}

}  // namespace
}  // namespace pipec
