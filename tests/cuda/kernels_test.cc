// Every CUDA kernel gives what the CPU's gives, whatever the order of threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "runtime/base/small_floats.h"
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

// 16-bit floats as float32.
std::string Widened(DType dtype, const std::string& bytes) {
  std::vector<float> wide;
  ToFloats(dtype, bytes, wide);
  return {reinterpret_cast<const char*>(wide.data()), wide.size() * sizeof(float)};
}

// The CPU multiplies 16-bit floats on some processors only: the same products of the same numbers as float32 instead.
TEST(CudaProducts, OfSixteenBitsAreTheCpusOfFloat32) {
  for (const Name& name : {Name("", "MatMul"), Name("ai.pipec", "FusedMatMul"), Name("", "Gemm")}) {
    for (const DType narrow : {DType::kFloat16, DType::kBFloat16}) {
      int compared = 0;
      for (uint64_t seed = 0; seed < 60; ++seed) {
        cuda_emulation::SetSeed(seed);
        std::mt19937_64 random(seed);
        KernelCase wide = OpCases().at(name)(random);
        if (wide.spec.inputs[0].type.dtype != DType::kFloat32) continue;
        KernelCase c = wide;
        for (size_t k = 0; k < c.inputs.size(); ++k) {
          const auto* const floats = reinterpret_cast<const float*>(wide.inputs[k].data());
          c.spec.inputs[k].type.dtype = narrow;
          c.inputs[k] = RoundToSmallFloats(narrow, {floats, wide.inputs[k].size() / sizeof(float)});
          wide.inputs[k] = Widened(narrow, c.inputs[k]);
        }
        const TensorType result = wide.spec.outputs[0].type;
        c.spec.outputs[0].type.dtype = narrow;
        SCOPED_TRACE(absl::StrCat("seed ", seed, ": ", Describe(c.spec)));
        const auto wanted = RunCase(*MakeCpuDevice(1), wide);
        ASSERT_TRUE(wanted.ok()) << wanted.status();
        const auto got = RunCase(*MakeCudaDevice(0), c);
        EXPECT_THAT(cuda_emulation::TakeReports(), testing::IsEmpty());
        ASSERT_TRUE(got.ok()) << got.status();
        ASSERT_EQ(Difference(result, (*wanted)[0], Widened(narrow, (*got)[0]), ToleranceOf(c.spec)), "");
        ++compared;
      }
      EXPECT_GE(compared, 20);
    }
  }
}

}  // namespace
}  // namespace pipec
