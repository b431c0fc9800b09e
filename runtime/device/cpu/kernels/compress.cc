// ai.pipec::Compress: the entries along an axis that a condition picks, and how many they are.
#include <algorithm>
#include <cstring>
#include <memory>

#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/operands/check.h"

namespace pipec::cpu {
namespace {

// x is (outer, n, row bytes), the result (outer, m, row bytes); m conditions are looked at.
struct Sizes {
  int64_t outer, n, m, row;
};

int64_t Run(const Sizes& sizes, const char* x, const bool* condition, char* y) {
  const auto [outer, n, m, row] = sizes;
  const int64_t picked = std::count(condition, condition + m, true);
  for (int64_t o = 0; o < outer; ++o) {
    char* to = y + o * m * row;
    for (int64_t i = 0; i < m && row > 0; ++i) {
      if (!condition[i]) continue;
      std::memcpy(to, x + (o * n + i) * row, row);
      to += row;
    }
    std::fill(to, y + (o + 1) * m * row, 0);
  }
  return picked;
}

absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec) {
  RETURN_IF_ERROR(
      CheckOperands(spec, {.min_inputs = 2, .max_inputs = 2, .min_outputs = 2, .max_outputs = 2}));
  RETURN_IF_ERROR(CheckInputType(spec, 1, DType::kBool));
  TensorType y = spec.inputs[0].type;
  const int64_t size = SizeOf(y.dtype), conditions = NumElements(spec.inputs[1].type.shape);
  Sizes sizes{1, NumElements(y.shape), 0, size};
  if (spec.attributes.Has("axis")) {
    absl::StatusOr<int> axis = NormaliseAxis(spec.attributes.Int("axis"), static_cast<int>(y.shape.size()));
    if (!axis.ok()) return Invalid(spec, axis.status().message());
    const auto shape = absl::MakeSpan(y.shape);
    sizes = {NumElements(shape.first(*axis)), shape[*axis], 0, NumElements(shape.subspan(*axis + 1)) * size};
    sizes.m = y.shape[*axis] = std::min(sizes.n, conditions);
  } else {
    sizes.m = std::min(sizes.n, conditions);
    y.shape = {sizes.m};
  }
  RETURN_IF_ERROR(CheckOutput(spec, 0, y));
  RETURN_IF_ERROR(CheckOutput(spec, 1, {DType::kInt64, {}}));
  return MakeKernel(0, [sizes](const KernelArguments& arguments) {
    *Output<int64_t>(arguments, 1) =
        Run(sizes, Input<char>(arguments, 0), Input<bool>(arguments, 1), Output<char>(arguments, 0));
    return absl::OkStatus();
  });
}

}  // namespace

void RegisterCompressKernels(KernelRegistry& registry) { registry.Add("Compress", kPipecDomain, Prepare); }

}  // namespace pipec::cpu
