// Gather, and GatherGrad which adds a gradient to where Gather read.
#include "runtime/device/operands/gather.h"

#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/element_kernel.h"
#include "runtime/device/cpu/kernels/indices.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/kernels/typed.h"
#include "runtime/device/operands/check.h"

namespace pipec::cpu {
namespace {

template <typename I>
class GatherKernel : public Kernel {
 public:
  GatherKernel(const GatherSizes& sizes, int64_t element_bytes)
      : sizes_(sizes), bytes_(sizes.inner * element_bytes) {}

  absl::Status Launch(Stream&, const KernelArguments& arguments) override {
    const auto* data = static_cast<const std::byte*>(arguments.inputs[0]);
    const auto* indices = static_cast<const I*>(arguments.inputs[1]);
    auto* result = static_cast<std::byte*>(arguments.outputs[0]);
    const auto [outer, dim, inner, count] = sizes_;
    const int64_t bytes = bytes_;
    if (outer * inner == 0) return absl::OkStatus();
    RETURN_IF_ERROR(CheckIndices(indices, count, {dim}));
    ParallelFor(outer * count, std::max<int64_t>(1, 4 * kElementGrain / bytes),
                [&, dim = dim, count = count](int64_t begin, int64_t end) {
                  for (int64_t row = begin; row < end; ++row) {
                    const int64_t index = indices[row % count], place = index < 0 ? index + dim : index;
                    std::memcpy(result + row * bytes, data + (row / count * dim + place) * bytes, bytes);
                  }
                });
    return absl::OkStatus();
  }

 private:
  const GatherSizes sizes_;
  const int64_t bytes_;
};

absl::StatusOr<std::unique_ptr<Kernel>> PrepareGather(const KernelSpec& spec) {
  ASSIGN_OR_RETURN(const GatherSizes sizes, GatherSizesOf(spec));
  const int64_t bytes = SizeOf(spec.inputs[0].type.dtype);
  if (spec.inputs[1].type.dtype == DType::kInt32)
    return std::make_unique<GatherKernel<int32_t>>(sizes, bytes);
  return std::make_unique<GatherKernel<int64_t>>(sizes, bytes);
}

// A place that is gathered twice gets its gradients in the order of the indices, whatever the number of
// threads: each thread has its own columns, or its own part of the outer axes.
template <typename T, typename I>
class GatherGradKernel : public Kernel {
 public:
  GatherGradKernel(const GatherSizes& sizes, bool accumulates) : sizes_(sizes), accumulates_(accumulates) {}

  absl::Status Launch(Stream&, const KernelArguments& arguments) override {
    const auto* dy = static_cast<const T*>(arguments.inputs[0]);
    const auto* indices = static_cast<const I*>(arguments.inputs[1]);
    auto* ddata = static_cast<T*>(arguments.outputs[0]);
    const GatherSizes& s = sizes_;
    if (!accumulates_ || arguments.first_microbatch) std::memset(ddata, 0, s.outer * s.dim * s.inner * sizeof(T));
    if (s.outer * s.inner == 0) return absl::OkStatus();
    RETURN_IF_ERROR(CheckIndices(indices, s.count, {s.dim}));
    const auto add = [&](int64_t outer, int64_t column, int64_t columns) {
      for (int64_t i = 0; i < s.count; ++i) {
        const int64_t index = indices[i], place = index < 0 ? index + s.dim : index;
        const T* from = dy + (outer * s.count + i) * s.inner + column;
        T* to = ddata + (outer * s.dim + place) * s.inner + column;
        for (int64_t c = 0; c < columns; ++c) to[c] += from[c];
      }
    };
    if (s.outer == 1) {
      ParallelFor(s.inner, std::max<int64_t>(64, kElementGrain / std::max<int64_t>(s.count, 1)),
                  [&](int64_t begin, int64_t end) { add(0, begin, end - begin); });
    } else {
      ParallelFor(s.outer, std::max<int64_t>(1, kElementGrain / std::max<int64_t>(s.count * s.inner, 1)),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t outer = begin; outer < end; ++outer) add(outer, 0, s.inner);
                  });
    }
    return absl::OkStatus();
  }

 private:
  const GatherSizes sizes_;
  const bool accumulates_;
};

absl::StatusOr<std::unique_ptr<Kernel>> PrepareGatherGrad(const KernelSpec& spec) {
  ASSIGN_OR_RETURN(const GatherSizes sizes, GatherGradSizesOf(spec));
  const DType dtype = spec.inputs[0].type.dtype;
  const bool wide = spec.inputs[1].type.dtype == DType::kInt64;
  auto kernel = ForType<std::unique_ptr<Kernel>>(Floats(), dtype, [&](auto t) -> std::unique_ptr<Kernel> {
    using T = typename decltype(t)::type;
    if (wide) return std::make_unique<GatherGradKernel<T, int64_t>>(sizes, spec.accumulates);
    return std::make_unique<GatherGradKernel<T, int32_t>>(sizes, spec.accumulates);
  });
  if (kernel == nullptr) return NoKernelFor(spec, dtype);
  return kernel;
}

}  // namespace

void RegisterGatherKernels(KernelRegistry& registry) {
  registry.Add("Gather", "", PrepareGather);
  registry.Add("GatherGrad", "ai.pipec", PrepareGatherGrad, /*adds=*/true);
}

}  // namespace pipec::cpu
