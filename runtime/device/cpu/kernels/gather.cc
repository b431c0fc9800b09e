// Gather, and GatherGrad which adds a gradient to where Gather read.
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/check.h"
#include "runtime/device/cpu/kernels/element_kernel.h"
#include "runtime/device/cpu/kernels/indices.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/kernels/typed.h"

namespace pipec::cpu {
namespace {

// data is (outer, dim, inner), the gathered tensor (outer, count, inner).
struct Sizes {
  int64_t outer, dim, inner, count;
};

// Data and axis as in ONNX, `gathered` has the shape of indices in the axis' place.
absl::StatusOr<Sizes> FindSizes(const KernelSpec& spec, const Shape& data, const TensorType& indices,
                                Shape* gathered) {
  absl::StatusOr<int> axis = NormaliseAxis(spec.attributes.Int("axis", 0), static_cast<int>(data.size()));
  if (!axis.ok()) return Invalid(spec, axis.status().message());
  RETURN_IF_ERROR(CheckIndexType(spec, 1));
  gathered->assign(data.begin(), data.begin() + *axis);
  gathered->insert(gathered->end(), indices.shape.begin(), indices.shape.end());
  gathered->insert(gathered->end(), data.begin() + *axis + 1, data.end());
  return Sizes{NumElements(absl::MakeSpan(data).subspan(0, *axis)), data[*axis],
               NumElements(absl::MakeSpan(data).subspan(*axis + 1)), indices.elements()};
}

template <typename I>
class GatherKernel : public Kernel {
 public:
  GatherKernel(const Sizes& sizes, int64_t element_bytes)
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
  const Sizes sizes_;
  const int64_t bytes_;
};

absl::StatusOr<std::unique_ptr<Kernel>> PrepareGather(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 2, .max_inputs = 2}));
  const TensorType &data = spec.inputs[0].type, &indices = spec.inputs[1].type;
  if (SizeOf(data.dtype) == 0) return NoKernelFor(spec, data.dtype);
  Shape shape;
  ASSIGN_OR_RETURN(const Sizes sizes, FindSizes(spec, data.shape, indices, &shape));
  RETURN_IF_ERROR(CheckOutput(spec, 0, {data.dtype, shape}));
  if (indices.dtype == DType::kInt32)
    return std::make_unique<GatherKernel<int32_t>>(sizes, SizeOf(data.dtype));
  return std::make_unique<GatherKernel<int64_t>>(sizes, SizeOf(data.dtype));
}

// A place that is gathered twice gets its gradients in the order of the indices, whatever the number of
// threads: each thread has its own columns, or its own part of the outer axes.
template <typename T, typename I>
class GatherGradKernel : public Kernel {
 public:
  explicit GatherGradKernel(const Sizes& sizes) : sizes_(sizes) {}

  absl::Status Launch(Stream&, const KernelArguments& arguments) override {
    const auto* dy = static_cast<const T*>(arguments.inputs[0]);
    const auto* indices = static_cast<const I*>(arguments.inputs[1]);
    auto* ddata = static_cast<T*>(arguments.outputs[0]);
    const Sizes& s = sizes_;
    std::memset(ddata, 0, s.outer * s.dim * s.inner * sizeof(T));
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
  const Sizes sizes_;
};

absl::StatusOr<std::unique_ptr<Kernel>> PrepareGatherGrad(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 2, .max_inputs = 2}));
  const TensorType &dy = spec.inputs[0].type, &indices = spec.inputs[1].type;
  const std::vector<int64_t> dims = spec.attributes.Ints("shape");
  const Shape data(dims.begin(), dims.end());
  RETURN_IF_ERROR(CheckOutput(spec, 0, {dy.dtype, data}));
  Shape gathered;
  ASSIGN_OR_RETURN(const Sizes sizes, FindSizes(spec, data, indices, &gathered));
  if (dy.shape != gathered) {
    return Invalid(spec, absl::StrCat("input 0 is ", ToString(dy.shape), ", wanted ", ToString(gathered)));
  }
  const bool wide = indices.dtype == DType::kInt64;
  auto kernel = ForType<std::unique_ptr<Kernel>>(Floats(), dy.dtype, [&](auto t) -> std::unique_ptr<Kernel> {
    using T = typename decltype(t)::type;
    if (wide) return std::make_unique<GatherGradKernel<T, int64_t>>(sizes);
    return std::make_unique<GatherGradKernel<T, int32_t>>(sizes);
  });
  if (kernel == nullptr) return NoKernelFor(spec, dy.dtype);
  return kernel;
}

}  // namespace

void RegisterGatherKernels(KernelRegistry& registry) {
  registry.Add("Gather", "", PrepareGather);
  registry.Add("GatherGrad", "ai.pipec", PrepareGatherGrad);
}

}  // namespace pipec::cpu
