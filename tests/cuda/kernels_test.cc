// Every CUDA kernel gives what the CPU's gives, whatever the order of threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "runtime/base/small_floats.h"
#include "runtime/device/cpu/cpu_device.h"
#include "runtime/device/cuda/cuda_device.h"
#include "runtime/device/cuda/kernel_registry.h"
#include "runtime/device/operands/own_casts.h"
#include "runtime/device/widened_kernel.h"
#include "tests/cuda/op_cases.h"
#include "tests/cuda_emulation/control.h"

namespace pipec {
namespace {

using Name = std::pair<std::string, std::string>;  // domain, op

constexpr uint64_t kSeeds = 40;

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
  return names;
}

std::vector<Name> AddingRows() {
  std::vector<Name> names;
#define ADDS(domain, op) names.emplace_back(domain, op);
#include "runtime/device/ops.def"
  return names;
}

TEST(CudaKernels, AreThoseOfOpsDef) {
  EXPECT_EQ(OpsDefRows(), cuda::Kernels().Names());
  EXPECT_EQ(AddingRows(), cuda::Kernels().Names(/*adding=*/true));
}

TEST(CudaKernels, AreTriedWithCastsOfTheirOwn) {
  std::vector<Name> names;
#define CASTS(domain, op, first, last, result) names.emplace_back(domain, op);
#include "runtime/device/ops.def"
  ASSERT_FALSE(names.empty());
  for (const Name& name : names) {
    int small = 0;
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      std::mt19937_64 random(seed);
      const KernelSpec spec = OpCases().at(name)(random).spec;
      small += HasOwnCasts(spec) && HasSmallFloats(spec);
    }
    EXPECT_GT(small, 1) << name.second;
  }
}

class CudaKernel : public testing::TestWithParam<Name> {};

TEST_P(CudaKernel, EqualsTheCpus) {
  ASSERT_TRUE(OpCases().contains(GetParam())) << "op_cases.cc makes no instruction of this op";
  const MakeCase& make_case = OpCases().at(GetParam());
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    cuda_emulation::SetSeed(seed);
    std::mt19937_64 random(seed);
    const KernelCase kernel_case = make_case(random);
    SCOPED_TRACE(absl::StrCat("seed ", seed, ": ", Describe(kernel_case.spec)));
    const auto wanted = RunCase(*MakeCpuDevice(1), kernel_case);
    ASSERT_TRUE(wanted.ok()) << wanted.status();
    const cuda_emulation::LiveObjects before = cuda_emulation::CountLiveObjects();
    const auto got = RunCase(*MakeCudaDevice(0), kernel_case);
    EXPECT_THAT(cuda_emulation::TakeReports(), testing::IsEmpty());
    EXPECT_TRUE(cuda_emulation::CountLiveObjects() == before) << "something was not given back";
    ASSERT_TRUE(got.ok()) << got.status();
    for (size_t k = 0; k < wanted->size(); ++k) {
      if (!kernel_case.spec.outputs[k].present) continue;
      ASSERT_EQ(Difference(kernel_case.spec.outputs[k].type, (*wanted)[k], (*got)[k],
                           ToleranceOf(kernel_case.spec)),
                "");
    }
  }
}

// Every result lies on a sum of its own, behind the operands.
KernelCase WithSums(KernelCase c, std::mt19937_64& random) {
  c.spec.attributes.Set("accumulate", int64_t{1});
  for (const KernelOperand& result : c.spec.outputs) {
    c.in_place.push_back(static_cast<int>(c.inputs.size()));
    c.inputs.push_back(RandomContents(result.type, random));
    c.spec.inputs.push_back(result);
  }
  return c;
}

class AddingCudaKernel : public testing::TestWithParam<Name> {};

TEST_P(AddingCudaKernel, EqualsTheCpus) {
  int compared = 0;
  for (uint64_t seed = 0; seed < 160; ++seed) {
    cuda_emulation::SetSeed(seed);
    std::mt19937_64 random(seed);
    KernelCase kernel_case = OpCases().at(GetParam())(random);
    const DType to = kernel_case.spec.outputs[0].type.dtype;
    const bool biased = GetParam().second == "FusedMatMul" &&
                        (kernel_case.inputs.size() > 2 || kernel_case.spec.attributes.Has("activation"));
    if (biased || (to != DType::kFloat32 && to != DType::kFloat64)) continue;
    kernel_case = WithSums(kernel_case, random);
    for (const int64_t microbatch : {0, 1}) {
      kernel_case.scalars.microbatch = microbatch;
      SCOPED_TRACE(
          absl::StrCat("seed ", seed, ", microbatch ", microbatch, ": ", Describe(kernel_case.spec)));
      const auto wanted = RunCase(*MakeCpuDevice(1), kernel_case);
      ASSERT_TRUE(wanted.ok()) << wanted.status();
      const auto got = RunCase(*MakeCudaDevice(0), kernel_case);
      EXPECT_THAT(cuda_emulation::TakeReports(), testing::IsEmpty());
      ASSERT_TRUE(got.ok()) << got.status();
      for (size_t k = 0; k < wanted->size(); ++k) {
        ASSERT_EQ(Difference(kernel_case.spec.outputs[k].type, (*wanted)[k], (*got)[k],
                             ToleranceOf(kernel_case.spec)),
                  "");
      }
    }
    ++compared;
  }
  EXPECT_GE(compared, 20);
}

INSTANTIATE_TEST_SUITE_P(All, AddingCudaKernel, testing::ValuesIn(AddingRows()),
                         [](const auto& info) { return info.param.second; });

// A helper op may have the name of ONNX's, whose work it does with casts of its own.
std::string NameOf(const testing::TestParamInfo<Name>& info) {
  const auto& [domain, op] = info.param;
  return !domain.empty() && OpCases().contains({"", op}) ? op + "WithCasts" : op;
}

INSTANTIATE_TEST_SUITE_P(All, CudaKernel, testing::ValuesIn(cuda::Kernels().Names()), NameOf);

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

// What a run says when one of its calls fails, call by call: what it is made of.
std::string SaysOfItsCalls(const KernelCase& kernel_case) {
  cuda_emulation::SetSeed(0);
  EXPECT_TRUE(RunCase(*MakeCudaDevice(0), kernel_case).ok());
  const int64_t calls = cuda_emulation::CallCount();
  std::string all;
  for (int64_t k = 1; k <= calls; ++k) {
    cuda_emulation::SetSeed(0);
    cuda_emulation::FailCall(k, cudaErrorNotSupported);
    absl::StrAppend(&all, RunCase(*MakeCudaDevice(0), kernel_case).status().message(), "\n");
  }
  cuda_emulation::SetSeed(0);
  cuda_emulation::TakeReports();
  return all;
}

KernelCase OfTypes(const Name& name, const std::vector<TensorType>& inputs,
                   const std::vector<TensorType>& outputs) {
  std::mt19937_64 random(1);
  KernelCase c;
  c.spec.domain = name.first, c.spec.op = c.spec.name = name.second;
  for (const TensorType& type : inputs)
    c.spec.inputs.push_back({type}), c.inputs.push_back(RandomContents(type, random));
  for (const TensorType& type : outputs) c.spec.outputs.push_back({type});
  return c;
}

// cuBLASLt does it all; of float64 it has no epilogues, and kernels do the rest.
TEST(CudaKernels, ABiasAndItsGradientAreEpilogues) {
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    const auto is = [&](Shape shape) { return TensorType{dtype, std::move(shape)}; };
    for (const KernelCase& c :
         {OfTypes({"ai.pipec", "FusedMatMul"}, {is({6, 4}), is({4, 8}), is({8})}, {is({6, 8})}),
          OfTypes({"", "Gemm"}, {is({6, 4}), is({4, 8}), is({8})}, {is({6, 8})}),
          OfTypes({"ai.pipec", "MatMulWeightGrad"}, {is({6, 4}), is({6, 8})}, {is({8, 4}), is({4})})}) {
      const std::string said = SaysOfItsCalls(c);
      EXPECT_THAT(said, testing::HasSubstr("cublasLtMatmul")) << c.spec.op;
      EXPECT_EQ(said.find("launching a kernel") == std::string::npos, dtype == DType::kFloat32) << c.spec.op;
    }
  }
}

// Where it has them for aligned operands alone, those have them, and others the same numbers.
TEST(CudaKernels, EpiloguesStayWhereOperandsAreAligned) {
  const auto is = [](Shape shape) { return TensorType{DType::kFloat32, std::move(shape)}; };
  cuda_emulation::EpiloguesWantAlignment(true);
  for (const KernelCase& c :
       {OfTypes({"ai.pipec", "FusedMatMul"}, {is({6, 4}), is({4, 8}), is({8})}, {is({6, 8})}),
        OfTypes({"ai.pipec", "MatMulWeightGrad"}, {is({6, 4}), is({6, 8})}, {is({8, 4}), is({4})})}) {
    const std::string said = SaysOfItsCalls(c);
    EXPECT_THAT(said, testing::HasSubstr("cublasLtMatmul")) << c.spec.op;
    EXPECT_EQ(said.find("launching a kernel"), std::string::npos) << c.spec.op;
    const auto wanted = RunCase(*MakeCpuDevice(1), c);
    ASSERT_TRUE(wanted.ok()) << wanted.status();
    for (const int64_t apart : {0, 4}) {
      const auto got = RunCase(*MakeCudaDevice(0), c, apart);
      ASSERT_TRUE(got.ok()) << got.status();
      for (size_t k = 0; k < wanted->size(); ++k)
        EXPECT_EQ(Difference(c.spec.outputs[k].type, (*wanted)[k], (*got)[k], ToleranceOf(c.spec)), "");
    }
  }
  cuda_emulation::EpiloguesWantAlignment(false);
  EXPECT_THAT(cuda_emulation::TakeReports(), testing::IsEmpty());
}

// The gradient's other operand must have rows of a multiple of 8 elements.
TEST(CudaKernels, GeluAndItsGradientAreEpilogues) {
  for (DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kFloat64}) {
    for (const int64_t n : {8, 12}) {
      const auto is = [&](Shape shape) { return TensorType{dtype, std::move(shape)}; };
      const Name name("ai.pipec", "FusedMatMul");
      KernelCase bare = OfTypes(name, {is({6, 4}), is({4, n})}, {is({6, n})}),
                 biased = OfTypes(name, {is({6, 4}), is({4, n}), is({n})}, {is({6, n})}),
                 gradient = OfTypes(name, {is({6, 4}), is({4, n}), is({n}), is({6, n})}, {is({6, n})});
      gradient.spec.inputs[2].present = false;
      for (KernelCase* c : {&bare, &biased, &gradient}) {
        c->spec.attributes.Set("activation", std::string(c == &gradient ? "GeluTanhGrad" : "GeluTanh"));
        const std::string said = SaysOfItsCalls(*c);
        EXPECT_THAT(said, testing::HasSubstr("cublasLtMatmul"));
        const bool whole = dtype != DType::kFloat64 && (c != &gradient || n % 8 == 0);
        EXPECT_EQ(said.find("launching a kernel") == std::string::npos, whole) << Describe(c->spec);
      }
    }
  }
}

// Sums over many rows are made of those of blocks of rows, of columns that fill vectors and of others.
TEST(CudaKernels, RowsOfAGradientAreSharedByBlocks) {
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (const int64_t columns : {36, 37, 300}) {
      const TensorType x{dtype, {500, columns}}, row{dtype, {columns}}, statistics{dtype, {500, 1}};
      KernelCase norm = OfTypes({"ai.pipec", "LayerNormalizationWeightGrad"}, {x, x, statistics, statistics},
                                {row, row}),
                 product = OfTypes({"ai.pipec", "MatMulWeightGrad"}, {x, {dtype, {500, 3}}},
                                   {{dtype, {3, columns}}, row});
      std::mt19937_64 random(columns);
      norm.inputs[3] = RandomContents(statistics, random, /*positive=*/true);
      for (const KernelCase& c : {norm, product}) {
        SCOPED_TRACE(Describe(c.spec));
        cuda_emulation::SetSeed(columns);
        const auto wanted = RunCase(*MakeCpuDevice(1), c), got = RunCase(*MakeCudaDevice(0), c);
        EXPECT_THAT(cuda_emulation::TakeReports(), testing::IsEmpty());
        ASSERT_TRUE(wanted.ok() && got.ok()) << got.status();
        for (size_t k = 0; k < wanted->size(); ++k)
          EXPECT_EQ(Difference(c.spec.outputs[k].type, (*wanted)[k], (*got)[k], 1e-4), "");
      }
    }
  }
  // Of a layer of a language model: two sums in float64 of each column and block, on hundreds of multiprocessors.
  const TensorType x{DType::kFloat32, {8192, 768}}, row{DType::kFloat32, {768}}, statistics{DType::kFloat32, {8192, 1}};
  KernelSpec spec{.op = "LayerNormalizationWeightGrad", .domain = "ai.pipec"};
  for (const TensorType& type : {x, x, statistics, statistics}) spec.inputs.push_back({type});
  spec.outputs = {{row}, {row}};
  const auto kernel = MakeCudaDevice(0)->Prepare(spec);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_EQ((*kernel)->workspace_bytes(), 64 * 2 * 768 * 8);
}

TEST(CudaKernels, ManyElementsAreForAllOfTheDevice) {
  const TensorType many{DType::kFloat32, {1 << 16}}, one{DType::kFloat32, {1}};
  EXPECT_THAT(SaysOfItsCalls(OfTypes({"", "ReduceSum"}, {many}, {one})),
              testing::HasSubstr("a device-wide sum"));
  EXPECT_THAT(SaysOfItsCalls(OfTypes({"ai.pipec", "SquaredNorm"}, {many}, {{DType::kFloat64, {}}})),
              testing::HasSubstr("a device-wide sum"));
  KernelCase top = OfTypes({"", "TopK"}, {{DType::kFloat32, {2, 300}}, {DType::kInt64, {1}}},
                           {{DType::kFloat32, {2, 100}}, {DType::kInt64, {2, 100}}});
  const int64_t k = 100;
  top.inputs[1].assign(reinterpret_cast<const char*>(&k), sizeof k);
  EXPECT_THAT(SaysOfItsCalls(top), testing::HasSubstr("a device-wide sort"));
}

}  // namespace
}  // namespace pipec
