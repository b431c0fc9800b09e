// Trilu: the upper or lower triangle of matrices, zeros elsewhere.
#include <algorithm>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/element_kernel.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/operands/check.h"

namespace pipec::cpu {
namespace {

class TriluKernel : public Kernel {
 public:
  TriluKernel(const TensorType& x, bool upper, bool has_k)
      : rows_(x.shape[x.shape.size() - 2]),
        columns_(x.shape.back()),
        matrices_(NumElements(absl::MakeSpan(x.shape).first(x.shape.size() - 2))),
        bytes_(SizeOf(x.dtype)),
        upper_(upper),
        has_k_(has_k) {}

  absl::Status Launch(Stream&, const KernelArguments& arguments) override {
    const auto* x = static_cast<const std::byte*>(arguments.inputs[0]);
    auto* y = static_cast<std::byte*>(arguments.outputs[0]);
    const int64_t k = has_k_ ? *static_cast<const int64_t*>(arguments.inputs[1]) : 0;
    // Beyond the matrix all diagonals are alike.
    const int64_t diagonal = std::clamp(k, -rows_ - 1, columns_ + 1);
    const int64_t grain = std::max<int64_t>(1, kElementGrain / std::max<int64_t>(columns_, 1));
    ParallelFor(matrices_ * rows_, grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        // Upper keeps columns from row + k on; lower up to and with row + k.
        const int64_t split = std::clamp<int64_t>(row % rows_ + diagonal + (upper_ ? 0 : 1), 0, columns_);
        const int64_t first = upper_ ? split : 0, last = upper_ ? columns_ : split;
        const std::byte* from = x + row * columns_ * bytes_;
        std::byte* to = y + row * columns_ * bytes_;
        if (from != to) std::memcpy(to + first * bytes_, from + first * bytes_, (last - first) * bytes_);
        std::memset(to, 0, first * bytes_);
        std::memset(to + last * bytes_, 0, (columns_ - last) * bytes_);
      }
    });
    return absl::OkStatus();
  }

 private:
  const int64_t rows_, columns_, matrices_, bytes_;
  const bool upper_, has_k_;
};

absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 1, .max_inputs = 2}));
  const TensorType& x = spec.inputs[0].type;
  if (SizeOf(x.dtype) == 0) return NoKernelFor(spec, x.dtype);
  if (x.shape.size() < 2) return Invalid(spec, absl::StrCat("input 0 is ", ToString(x), ", wanted matrices"));
  if (Has(spec, 1) && (spec.inputs[1].type.dtype != DType::kInt64 || spec.inputs[1].type.elements() != 1)) {
    return Invalid(spec, absl::StrCat("input 1 is ", ToString(spec.inputs[1].type), ", wanted one int64"));
  }
  RETURN_IF_ERROR(CheckOutput(spec, 0, x));
  return std::make_unique<TriluKernel>(x, spec.attributes.Int("upper", 1) != 0, Has(spec, 1));
}

}  // namespace

void RegisterTriluKernels(KernelRegistry& registry) { registry.Add("Trilu", "", Prepare); }

}  // namespace pipec::cpu
