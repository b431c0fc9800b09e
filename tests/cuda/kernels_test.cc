// Every CUDA kernel gives what the CPU's gives, whatever the order of threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "runtime/device/cpu/cpu_device.h"
#include "runtime/device/cuda/cuda_device.h"
#include "runtime/device/cuda/kernel_registry.h"
#include "tests/cuda/op_cases.h"
#include "tests/cuda_emulation/control.h"

namespace pipec {
namespace {

using Name = std::pair<std::string, std::string>;  // domain, op

double ToleranceOf(const KernelSpec& spec) {
  double tolerance = 1e-12;
  for (const auto* operands : {&spec.inputs, &spec.outputs}) {
    for (const KernelOperand& operand : *operands) {
      if (!operand.present) continue;
      // A product or an exponential may differ in the last place or two.
      if (operand.type.dtype == DType::kFloat32) tolerance = std::max(tolerance, 4e-6);
      if (operand.type.dtype == DType::kFloat16) tolerance = std::max(tolerance, 2e-3);
      if (operand.type.dtype == DType::kBFloat16) tolerance = std::max(tolerance, 1.6e-2);
    }
  }
  return tolerance;
}

std::string Describe(const KernelSpec& spec) {
  std::string text = spec.op;
  for (const KernelOperand& operand : spec.inputs) {
    absl::StrAppend(&text, " ", operand.present ? ToString(operand.type) : "-");
  }
  return text;
}

std::vector<Name> OpsDefRows() {
  std::vector<Name> names;
#define OP(domain, op, cpu, cuda) \
  if (cuda != 0) names.emplace_back(domain, op);
#include "runtime/device/ops.def"
#undef OP
  return names;
}

TEST(CudaKernels, AreThoseOfOpsDef) { EXPECT_EQ(OpsDefRows(), cuda::Kernels().Names()); }

class CudaKernel : public testing::TestWithParam<Name> {};

TEST_P(CudaKernel, EqualsTheCpus) {
  ASSERT_TRUE(OpCases().contains(GetParam())) << "op_cases.cc makes no instruction of this op";
  const MakeCase& make_case = OpCases().at(GetParam());
  for (uint64_t seed = 0; seed < 40; ++seed) {
    cuda_emulation::SetSeed(seed);
    std::mt19937_64 random(seed);
    const KernelCase kernel_case = make_case(random);
    SCOPED_TRACE(absl::StrCat("seed ", seed, ": ", Describe(kernel_case.spec)));
    const auto wanted = RunCase(*MakeCpuDevice(1), kernel_case);
    ASSERT_TRUE(wanted.ok()) << wanted.status();
    const auto got = RunCase(*MakeCudaDevice(0), kernel_case);
    EXPECT_THAT(cuda_emulation::TakeReports(), testing::IsEmpty());
    ASSERT_TRUE(got.ok()) << got.status();
    for (size_t k = 0; k < wanted->size(); ++k) {
      if (!kernel_case.spec.outputs[k].present) continue;
      ASSERT_EQ(Difference(kernel_case.spec.outputs[k].type, (*wanted)[k], (*got)[k],
                           ToleranceOf(kernel_case.spec)),
                "");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, CudaKernel, testing::ValuesIn(cuda::Kernels().Names()),
                         [](const auto& info) { return info.param.second; });

}  // namespace
}  // namespace pipec
