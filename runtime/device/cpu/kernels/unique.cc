// ai.pipec::Unique: entries along an axis, each once, and how many they are. Entries are compared element by
// element, as NumPy's unique does; NaN equals NaN and comes last.
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <type_traits>

#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/kernels/typed.h"
#include "runtime/device/operands/check.h"

namespace pipec::cpu {
namespace {

// x is (outer, n, inner).
struct Sizes {
  int64_t outer, n, inner;
  bool sorted;
};

// Results, null where nobody asked.
struct Results {
  void* y;
  int64_t *indices, *inverse, *counts, *count;
};

template <typename T>
bool IsNan(T x) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(x);
  return false;
}

// -1, 0 or 1, as entry `a` is less than, equal to or greater than entry `b`.
template <typename T>
int Compare(const Sizes& sizes, const T* x, int64_t a, int64_t b) {
  for (int64_t o = 0; o < sizes.outer; ++o) {
    for (int64_t i = 0; i < sizes.inner; ++i) {
      const T left = x[(o * sizes.n + a) * sizes.inner + i], right = x[(o * sizes.n + b) * sizes.inner + i];
      if (IsNan(left) || IsNan(right)) {
        if (IsNan(left) && IsNan(right)) continue;
        return IsNan(left) ? 1 : -1;
      }
      if (left != right) return left < right ? -1 : 1;
    }
  }
  return 0;
}

using UniqueLoop = void (*)(const Sizes& sizes, const void* x, const Results& results, int64_t* workspace);
constexpr int64_t kArrays = 5;  // of n numbers, that the loop works with

template <typename T>
void Loop(const Sizes& sizes, const void* data, const Results& results, int64_t* workspace) {
  const auto* x = static_cast<const T*>(data);
  const int64_t n = sizes.n;
  int64_t *order = workspace, *group_of = order + n, *first = group_of + n, *groups = first + n,
          *place = groups + n;
  std::iota(order, order + n, 0);
  // Of equal entries the first comes first.
  std::sort(order, order + n, [&](int64_t a, int64_t b) {
    const int compared = Compare(sizes, x, a, b);
    return compared != 0 ? compared < 0 : a < b;
  });
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (i == 0 || Compare(sizes, x, order[i - 1], order[i]) != 0) first[count++] = order[i];
    group_of[order[i]] = count - 1;
  }
  // groups[k] is the group that comes at place k of the results.
  std::iota(groups, groups + count, 0);
  if (!sizes.sorted) {
    std::sort(groups, groups + count, [&](int64_t a, int64_t b) { return first[a] < first[b]; });
  }
  for (int64_t k = 0; k < count; ++k) place[groups[k]] = k;
  *results.count = count;
  auto* y = static_cast<T*>(results.y);
  std::fill(y, y + sizes.outer * n * sizes.inner, T{0});
  for (int64_t o = 0; o < sizes.outer; ++o) {
    for (int64_t k = 0; k < count; ++k) {
      const T* from = x + (o * n + first[groups[k]]) * sizes.inner;
      std::copy(from, from + sizes.inner, y + (o * n + k) * sizes.inner);
    }
  }
  if (results.indices) {
    std::fill(results.indices, results.indices + n, 0);
    for (int64_t k = 0; k < count; ++k) results.indices[k] = first[groups[k]];
  }
  if (results.inverse) {
    for (int64_t i = 0; i < n; ++i) results.inverse[i] = place[group_of[i]];
  }
  if (results.counts) {
    std::fill(results.counts, results.counts + n, 0);
    for (int64_t i = 0; i < n; ++i) ++results.counts[place[group_of[i]]];
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec) {
  RETURN_IF_ERROR(
      CheckOperands(spec, {.min_inputs = 1, .max_inputs = 1, .min_outputs = 1, .max_outputs = 5}));
  TensorType y = spec.inputs[0].type;
  Sizes sizes{1, NumElements(y.shape), 1, spec.attributes.Int("sorted", 1) != 0};
  if (spec.attributes.Has("axis")) {
    absl::StatusOr<int> axis = NormaliseAxis(spec.attributes.Int("axis"), static_cast<int>(y.shape.size()));
    if (!axis.ok()) return Invalid(spec, axis.status().message());
    const auto shape = absl::MakeSpan(y.shape);
    sizes.outer = NumElements(shape.first(*axis));
    sizes.n = shape[*axis];
    sizes.inner = NumElements(shape.subspan(*axis + 1));
  } else {
    y.shape = {sizes.n};
  }
  if (spec.outputs.size() != 5 || !HasOutput(spec, 0) || !HasOutput(spec, 4)) {
    return Invalid(spec, "wanted results 0 and 4");
  }
  RETURN_IF_ERROR(CheckOutput(spec, 0, y));
  for (int k = 1; k < 4; ++k) {
    if (HasOutput(spec, k)) RETURN_IF_ERROR(CheckOutput(spec, k, {DType::kInt64, {sizes.n}}));
  }
  RETURN_IF_ERROR(CheckOutput(spec, 4, {DType::kInt64, {}}));
  const auto loop = ForType<UniqueLoop>(NumbersAndBool(), y.dtype, [](auto t) -> UniqueLoop {
    return Loop<typename decltype(t)::type>;
  });
  if (loop == nullptr) return NoKernelFor(spec, y.dtype);
  const int64_t workspace = kArrays * sizes.n * static_cast<int64_t>(sizeof(int64_t));
  return MakeKernel(workspace, [sizes, loop](const KernelArguments& arguments) {
    const Results results{arguments.outputs[0], Output<int64_t>(arguments, 1), Output<int64_t>(arguments, 2),
                          Output<int64_t>(arguments, 3), Output<int64_t>(arguments, 4)};
    loop(sizes, arguments.inputs[0], results, static_cast<int64_t*>(arguments.workspace));
    return absl::OkStatus();
  });
}

}  // namespace

void RegisterUniqueKernels(KernelRegistry& registry) { registry.Add("Unique", kPipecDomain, Prepare); }

}  // namespace pipec::cpu
