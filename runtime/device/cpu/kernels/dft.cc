// DFT (x, dft_length?, axis?) -> (y): x (..., 1 or 2), y (..., 2), real and imaginary parts last; lines
// along `axis` are cut or filled up with zeros to the length. onesided: the first n / 2 + 1 bins of a real
// line, and with inverse the other way, to (..., 1).
#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/fourier.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/kernels/slots.h"

namespace pipec::cpu {
namespace {

using Complex = Fourier::Complex;

struct Form {
  bool inverse = false, onesided = false;
  int64_t parts_in = 1, parts_out = 2;  // numbers of an element
};

// The transforms of the lines along one axis.
struct Lines {
  int64_t outer = 1, in = 0, out = 0, inner = 1;
  std::vector<Fourier> transforms;  // of the lengths that lead to `out` elements

  int64_t count() const { return outer * inner; }
  const Fourier* Find(int64_t n) const {
    for (const Fourier& transform : transforms) {
      if (transform.n() == n) return &transform;
    }
    return nullptr;
  }
};

template <typename T>
void RunLine(const Form& form, const Lines& lines, const Fourier& transform, int64_t at, const T* x, T* y,
             Complex* line) {
  const int64_t n = transform.n(), outer = at / lines.inner, inner = at % lines.inner;
  x += (outer * lines.in * lines.inner + inner) * form.parts_in;
  y += (outer * lines.out * lines.inner + inner) * form.parts_out;
  const bool mirrored = form.inverse && form.onesided;
  const int64_t read = std::min(lines.in, mirrored ? n / 2 + 1 : n);
  std::fill_n(line, n, Complex{});
  for (int64_t k = 0; k < read; ++k) {
    const T* const from = x + k * lines.inner * form.parts_in;
    line[k] = {static_cast<double>(from[0]), form.parts_in == 2 ? static_cast<double>(from[1]) : 0};
  }
  for (int64_t k = 1; k < read && mirrored; ++k) {
    if (2 * k != n) line[n - k] = std::conj(line[k]);
  }
  transform.Run(form.inverse, line, line + n);
  const double scale = form.inverse ? 1 / static_cast<double>(n) : 1;
  for (int64_t k = 0; k < lines.out; ++k) {
    T* const to = y + k * lines.inner * form.parts_out;
    to[0] = static_cast<T>(line[k].real() * scale);
    if (form.parts_out == 2) to[1] = static_cast<T>(line[k].imag() * scale);
  }
}

// One number of a tensor of int32 or int64.
int64_t ReadInt(const TensorType& type, const void* data) { return ReadInts(type, data)[0]; }

class DftKernel : public Kernel {
 public:
  DftKernel(const KernelSpec& spec, const Form& form)
      : x_(spec.inputs[0].type), form_(form), has_length_(Has(spec, 1)), has_axis_(Has(spec, 2)) {
    if (has_length_) length_ = spec.inputs[1].type;
    if (has_axis_) axis_ = spec.inputs[2].type;
    const TensorType& y = spec.outputs[0].type;
    for (size_t axis = 0; axis + 1 < x_.shape.size(); ++axis) {
      Lines lines;
      const auto dims = absl::MakeSpan(x_.shape);
      lines.outer = NumElements(dims.first(axis)), lines.in = dims[axis], lines.out = y.shape[axis];
      lines.inner = NumElements(dims.subspan(axis + 1, dims.size() - axis - 2));
      lines_.push_back(std::move(lines));
    }
  }

  // Which axes may be transformed: `only` or all of them.
  void MakeTransforms(std::optional<int> only) {
    int64_t most = 0;
    for (size_t axis = 0; axis < lines_.size(); ++axis) {
      Lines& lines = lines_[axis];
      if ((only && *only != static_cast<int>(axis)) || lines.out == 0) continue;
      const bool half = form_.onesided && !form_.inverse;
      const int64_t first = half ? 2 * (lines.out - 1) : lines.out, last = half ? first + 1 : first;
      for (int64_t n = std::max<int64_t>(1, first); n <= last; ++n) {
        lines.transforms.emplace_back(n);
        most = std::max(most, n + lines.transforms.back().scratch_elements());
      }
    }
    int64_t count = 0;
    for (const Lines& lines : lines_) count = std::max(count, lines.count());
    bytes_ = most * static_cast<int64_t>(sizeof(Complex));
    workspace_bytes_ = Slots(count, bytes_).workspace_bytes();
  }

  int64_t workspace_bytes() const override { return workspace_bytes_; }

  absl::Status Launch(Stream&, const KernelArguments& arguments) override {
    const int rank = static_cast<int>(x_.shape.size());
    ASSIGN_OR_RETURN(const int axis,
                     NormaliseAxis(has_axis_ ? ReadInt(axis_, arguments.inputs[2]) : -2, rank));
    if (axis == rank - 1) return absl::InvalidArgumentError("axis is that of real and imaginary parts");
    const Lines& lines = lines_[axis];
    if (lines.count() == 0 || lines.out == 0) return absl::OkStatus();
    const int64_t n = has_length_                       ? ReadInt(length_, arguments.inputs[1])
                      : form_.onesided && form_.inverse ? 2 * (lines.in - 1)
                                                        : lines.in;
    const Fourier* const transform = lines.Find(n);
    if (transform == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("dft_length is ", n, ", which does not give ", lines.out,
                                                     " elements along axis ", axis));
    }
    const Slots slots(lines.count(), bytes_);
    slots.Run(arguments.workspace, [&](int64_t at, void* memory) {
      Complex* const line = static_cast<Complex*>(memory);
      if (x_.dtype == DType::kFloat32) {
        RunLine(form_, lines, *transform, at, Input<float>(arguments, 0), Output<float>(arguments, 0), line);
      } else {
        RunLine(form_, lines, *transform, at, Input<double>(arguments, 0), Output<double>(arguments, 0),
                line);
      }
    });
    return absl::OkStatus();
  }

 private:
  const TensorType x_;
  const Form form_;
  const bool has_length_, has_axis_;
  TensorType length_, axis_;
  std::vector<Lines> lines_;  // by axis
  int64_t bytes_ = 0, workspace_bytes_ = 0;
};

absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 1, .max_inputs = 3}));
  const TensorType &x = spec.inputs[0].type, &y = spec.outputs[0].type;
  const int rank = static_cast<int>(x.shape.size());
  Form form{spec.attributes.Int("inverse", 0) != 0, spec.attributes.Int("onesided", 0) != 0};
  if (rank < 2 || (x.shape.back() != 1 && x.shape.back() != 2))
    return Invalid(spec, absl::StrCat("x is ", ToString(x), ", wanted 1 or 2 numbers along the last axis"));
  form.parts_in = x.shape.back();
  form.parts_out = form.inverse && form.onesided ? 1 : 2;
  if (form.onesided && !form.inverse && form.parts_in == 2)
    return Invalid(spec, "onesided is for real x, not for complex");
  if (static_cast<int>(y.shape.size()) != rank || y.shape.back() != form.parts_out)
    return Invalid(spec, absl::StrCat("y is ", ToString(y), " for x ", ToString(x)));
  RETURN_IF_ERROR(CheckOutput(spec, 0, {x.dtype, y.shape}));
  if (x.dtype != DType::kFloat32 && x.dtype != DType::kFloat64) return NoKernelFor(spec, x.dtype);
  for (int k = 1; k <= 2; ++k) {
    if (Has(spec, k) && (!IsSmallInts(spec.inputs[k].type) || spec.inputs[k].type.elements() != 1))
      return Invalid(
          spec, absl::StrCat("input ", k, " is ", ToString(spec.inputs[k].type), ", wanted one integer"));
  }
  std::optional<int> only;
  if (!Has(spec, 2) || spec.inputs[2].constant != nullptr) {
    absl::StatusOr<int> axis =
        NormaliseAxis(Has(spec, 2) ? ReadInt(spec.inputs[2].type, spec.inputs[2].constant) : -2, rank);
    if (!axis.ok()) return Invalid(spec, axis.status().message());
    only = *axis;
  }
  for (int k = 0; k < rank - 1; ++k) {
    if (only && *only != k && x.shape[k] != y.shape[k])
      return Invalid(spec, absl::StrCat("y is ", ToString(y), " for x ", ToString(x), " along axis ", *only));
  }
  auto kernel = std::make_unique<DftKernel>(spec, form);
  kernel->MakeTransforms(only);
  return kernel;
}

}  // namespace

void RegisterDftKernels(KernelRegistry& registry) { registry.Add("DFT", "", Prepare); }

}  // namespace pipec::cpu
