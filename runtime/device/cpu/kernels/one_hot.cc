// OneHot. An index outside [-depth, depth) is no error in ONNX: its place gets the off value throughout.
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/element_kernel.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/kernels/saturate.h"
#include "runtime/device/cpu/kernels/typed.h"
#include "runtime/device/operands/check.h"
#include "runtime/device/operands/one_hot.h"

namespace pipec::cpu {
namespace {

using ReadIndex = int64_t (*)(const void* data, int64_t place);

template <typename T>
int64_t Read(const void* data, int64_t place) {
  const T value = static_cast<const T*>(data)[place];
  if constexpr (std::is_floating_point_v<T>) return Saturate<int64_t>(value);
  return static_cast<int64_t>(value);
}

ReadIndex Reader(DType dtype) {
  return ForType<ReadIndex>(Numbers(), dtype,
                            [](auto t) -> ReadIndex { return Read<typename decltype(t)::type>; });
}

using OneHotLoop = void (*)(const OneHotSizes& sizes, ReadIndex read, const void* indices, const void* values,
                            void* result);

template <typename T>
void Loop(const OneHotSizes& sizes, ReadIndex read, const void* indices, const void* values, void* result) {
  const T off = static_cast<const T*>(values)[0], on = static_cast<const T*>(values)[1];
  const auto [outer, depth, inner] = sizes;
  auto* y = static_cast<T*>(result);
  ParallelFor(outer, std::max<int64_t>(1, kElementGrain / std::max<int64_t>(depth * inner, 1)),
              [=, depth = depth, inner = inner](int64_t begin, int64_t end) {
                std::fill(y + begin * depth * inner, y + end * depth * inner, off);
                for (int64_t i = begin * inner; i < end * inner; ++i) {
                  const int64_t index = read(indices, i);
                  if (index < -depth || index >= depth) continue;
                  y[(i / inner * depth + (index < 0 ? index + depth : index)) * inner + i % inner] = on;
                }
              });
}

class OneHotKernel : public Kernel {
 public:
  OneHotKernel(OneHotLoop loop, const OneHotSizes& sizes, ReadIndex read, ReadIndex read_depth)
      : loop_(loop), sizes_(sizes), read_(read), read_depth_(read_depth) {}

  absl::Status Launch(Stream&, const KernelArguments& arguments) override {
    RETURN_IF_ERROR(CheckDepth(arguments.inputs[1]));
    loop_(sizes_, read_, arguments.inputs[0], arguments.inputs[2], arguments.outputs[0]);
    return absl::OkStatus();
  }

  absl::Status CheckDepth(const void* data) const {
    const int64_t depth = read_depth_(data, 0);
    if (depth == sizes_.depth) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("depth is ", depth, ", but output 0 has room for ", sizes_.depth));
  }

 private:
  const OneHotLoop loop_;
  const OneHotSizes sizes_;
  const ReadIndex read_, read_depth_;
};

absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec) {
  ASSIGN_OR_RETURN(const OneHotSizes sizes, ReadOneHot(spec));
  const TensorType &indices = spec.inputs[0].type, &depth = spec.inputs[1].type,
                   &values = spec.inputs[2].type;
  const ReadIndex read = Reader(indices.dtype), read_depth = Reader(depth.dtype);
  const auto loop = ForSize<OneHotLoop>(
      SizeOf(values.dtype), [](auto t) -> OneHotLoop { return Loop<typename decltype(t)::type>; });
  if (read == nullptr) return NoKernelFor(spec, indices.dtype);
  if (read_depth == nullptr) return NoKernelFor(spec, depth.dtype);
  if (loop == nullptr) return NoKernelFor(spec, values.dtype);
  auto kernel = std::make_unique<OneHotKernel>(loop, sizes, read, read_depth);
  if (spec.inputs[1].constant != nullptr) {
    if (absl::Status status = kernel->CheckDepth(spec.inputs[1].constant); !status.ok()) {
      return Invalid(spec, status.message());
    }
  }
  return kernel;
}

}  // namespace

void RegisterOneHotKernels(KernelRegistry& registry) { registry.Add("OneHot", "", Prepare); }

}  // namespace pipec::cpu
