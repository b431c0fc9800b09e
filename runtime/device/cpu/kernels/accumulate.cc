// Accumulate (sum, x) -> (sum'): x in microbatch 0, else sum + x, in the type of sum; sum' lies where sum
// lies. With the attribute samples, 0 stands for the x of a microbatch that has padding. SquaredNorm (g) ->
// (n): float64, the same for every number of threads.
#include <algorithm>

#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/blocked_sum.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/parallel_for.h"

namespace pipec::cpu {
namespace {

template <typename S, typename T>
std::unique_ptr<Kernel> AccumulateKernel(int64_t n, int64_t samples) {
  return MakeKernel(0, [n, samples](const KernelArguments& arguments) {
    const S* sum = Input<S>(arguments, 0);
    const T* x = Input<T>(arguments, 1);
    S* out = Output<S>(arguments, 0);
    const bool first = arguments.first_microbatch;
    if (arguments.scalars->valid_samples < samples) {
      if (first) std::fill(out, out + n, S{0});
      return absl::OkStatus();
    }
    ParallelFor(n, 16384, [=](int64_t begin, int64_t end) {
      if (first) {
#pragma GCC ivdep
        for (int64_t i = begin; i < end; ++i) out[i] = static_cast<S>(x[i]);
      } else {
#pragma GCC ivdep
        for (int64_t i = begin; i < end; ++i) out[i] = sum[i] + static_cast<S>(x[i]);
      }
    });
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareAccumulate(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {2, 2}));
  const TensorType &sum = spec.inputs[0].type, &x = spec.inputs[1].type;
  const int64_t n = sum.elements(), samples = spec.attributes.Int("samples", 0);
  RETURN_IF_ERROR(CheckOutput(spec, 0, sum));
  RETURN_IF_ERROR(CheckInputElements(spec, 1, x.dtype, n));
  const auto is = [&](DType sum_type, DType x_type) { return sum.dtype == sum_type && x.dtype == x_type; };
  if (is(DType::kFloat32, DType::kFloat32)) return AccumulateKernel<float, float>(n, samples);
  if (is(DType::kFloat64, DType::kFloat32)) return AccumulateKernel<double, float>(n, samples);
  if (is(DType::kFloat64, DType::kFloat64)) return AccumulateKernel<double, double>(n, samples);
  if (is(DType::kInt32, DType::kInt32)) return AccumulateKernel<int32_t, int32_t>(n, samples);
  if (is(DType::kInt64, DType::kInt32)) return AccumulateKernel<int64_t, int32_t>(n, samples);
  if (is(DType::kInt64, DType::kInt64)) return AccumulateKernel<int64_t, int64_t>(n, samples);
  return NoKernelFor(spec, x.dtype);
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareSquaredNorm(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {1, 1}));
  const TensorType& type = spec.inputs[0].type;
  RETURN_IF_ERROR(CheckOutputElements(spec, 0, DType::kFloat64, 1));
  return ForFloats(spec, type.dtype, [n = type.elements()](auto zero) {
    using T = decltype(zero);
    return MakeKernel(BlockedSumBytes(n), [n](const KernelArguments& arguments) {
      const T* g = Input<T>(arguments, 0);
      *Output<double>(arguments, 0) = BlockedSum(n, arguments.workspace, [=](int64_t i) {
        const double value = g[i];
        return value * value;
      });
      return absl::OkStatus();
    });
  });
}

}  // namespace

void RegisterAccumulateKernels(KernelRegistry& registry) {
  registry.Add("Accumulate", kPipecDomain, PrepareAccumulate);
  registry.Add("SquaredNorm", kPipecDomain, PrepareSquaredNorm);
}

}  // namespace pipec::cpu
