// Concat and Split: pieces of one tensor along an axis, and the other way round.
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/check.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/kernels/strided_copy.h"

namespace pipec::cpu {
namespace {

struct Piece {
  StridedCopy copy;
  int64_t offset;  // in the whole, bytes
};

class ConcatKernel : public Kernel {
 public:
  explicit ConcatKernel(std::vector<Piece> pieces) : pieces_(std::move(pieces)) {}
  absl::Status Launch(Stream&, const KernelArguments& arguments) override {
    auto* whole = static_cast<std::byte*>(arguments.outputs[0]);
    for (size_t k = 0; k < pieces_.size(); ++k)
      pieces_[k].copy.Run(arguments.inputs[k], whole + pieces_[k].offset);
    return absl::OkStatus();
  }

 private:
  std::vector<Piece> pieces_;
};

class SplitKernel : public Kernel {
 public:
  explicit SplitKernel(std::vector<Piece> pieces) : pieces_(std::move(pieces)) {}
  absl::Status Launch(Stream&, const KernelArguments& arguments) override {
    const auto* whole = static_cast<const std::byte*>(arguments.inputs[0]);
    for (size_t k = 0; k < pieces_.size(); ++k) {
      if (arguments.outputs[k] == nullptr) continue;  // nobody reads this piece
      pieces_[k].copy.Run(whole + pieces_[k].offset, arguments.outputs[k]);
    }
    return absl::OkStatus();
  }

 private:
  std::vector<Piece> pieces_;
};

// The pieces of `whole` along `axis`, with their shapes checked. `into`: the pieces are copied into the
// whole.
absl::StatusOr<std::vector<Piece>> Pieces(const KernelSpec& spec, const TensorType& whole, int axis,
                                          absl::Span<const Shape> shapes, bool into) {
  const int64_t bytes = SizeOf(whole.dtype);
  if (bytes == 0) return NoKernelFor(spec, whole.dtype);
  const Shape strides = Strides(whole.shape);
  std::vector<Piece> pieces;
  int64_t at = 0;
  for (const Shape& shape : shapes) {
    Shape wanted = whole.shape;
    if (shape.size() == wanted.size()) wanted[axis] = shape[axis];
    if (shape != wanted) {
      return Invalid(spec, absl::StrCat("piece ", pieces.size(), " is ", ToString(shape), " of ",
                                        ToString(whole.shape), " on axis ", axis));
    }
    const Shape own = Strides(shape);
    pieces.push_back(
        {into ? StridedCopy(bytes, shape, own, strides) : StridedCopy(bytes, shape, strides, own),
         at * strides[axis] * bytes});
    at += shape[axis];
  }
  if (at != whole.shape[axis]) {
    return Invalid(spec, absl::StrCat("the pieces have ", at, " in all on axis ", axis, ", the whole has ",
                                      whole.shape[axis]));
  }
  return pieces;
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareConcat(const KernelSpec& spec) {
  const int n = std::max(static_cast<int>(spec.inputs.size()), 1);
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = n, .max_inputs = n}));
  const TensorType& whole = spec.outputs[0].type;
  absl::StatusOr<int> axis = NormaliseAxis(spec.attributes.Int("axis"), static_cast<int>(whole.shape.size()));
  if (!axis.ok()) return Invalid(spec, axis.status().message());
  std::vector<Shape> shapes;
  for (int k = 0; k < n; ++k) {
    RETURN_IF_ERROR(CheckInputType(spec, k, whole.dtype));
    shapes.push_back(spec.inputs[k].type.shape);
  }
  ASSIGN_OR_RETURN(std::vector<Piece> pieces, Pieces(spec, whole, *axis, shapes, /*into=*/true));
  return std::make_unique<ConcatKernel>(std::move(pieces));
}

// The sizes of the pieces: input 1 if it is known, equal parts of which the last may be smaller, or (input 1
// known at launch only) what the plan says. An absent result has its place too, so its size must follow from
// the others.
absl::StatusOr<std::unique_ptr<Kernel>> PrepareSplit(const KernelSpec& spec) {
  const int n = std::max(static_cast<int>(spec.outputs.size()), 1);
  RETURN_IF_ERROR(
      CheckOperands(spec, {.min_inputs = 1, .max_inputs = 2, .min_outputs = 0, .max_outputs = n}));
  const TensorType& whole = spec.inputs[0].type;
  absl::StatusOr<int> axis = NormaliseAxis(spec.attributes.Int("axis"), static_cast<int>(whole.shape.size()));
  if (!axis.ok()) return Invalid(spec, axis.status().message());
  const int64_t parts = spec.attributes.Int("num_outputs", n);
  if (parts != n) return Invalid(spec, absl::StrCat("has ", n, " outputs, num_outputs is ", parts));
  const int64_t equal = (whole.shape[*axis] + n - 1) / n;
  int64_t left = whole.shape[*axis];
  Ints sizes;
  if (Has(spec, 1) && spec.inputs[1].constant != nullptr) {
    if (spec.inputs[1].type != TensorType{DType::kInt64, {n}}) {
      return Invalid(spec,
                     absl::StrCat("input 1 is ", ToString(spec.inputs[1].type), ", wanted int64[", n, "]"));
    }
    sizes = ReadInts(spec.inputs[1].type, spec.inputs[1].constant);
  } else {
    for (int k = 0; k < n; ++k) {
      const KernelOperand& output = spec.outputs[k];
      const bool free = Has(spec, 1) && output.present && output.type.shape.size() == whole.shape.size();
      sizes.push_back(free ? output.type.shape[*axis] : std::min(equal, left));
      left -= sizes.back();
    }
  }
  std::vector<Shape> shapes;
  for (int k = 0; k < n; ++k) {
    if (sizes[k] < 0) return Invalid(spec, absl::StrCat("piece ", k, " has a negative size ", sizes[k]));
    Shape shape = whole.shape;
    shape[*axis] = sizes[k];
    if (spec.outputs[k].present) RETURN_IF_ERROR(CheckOutput(spec, k, {whole.dtype, shape}));
    shapes.push_back(shape);
  }
  ASSIGN_OR_RETURN(std::vector<Piece> pieces, Pieces(spec, whole, *axis, shapes, /*into=*/false));
  return std::make_unique<SplitKernel>(std::move(pieces));
}

}  // namespace

void RegisterConcatKernels(KernelRegistry& registry) {
  registry.Add("Concat", "", PrepareConcat);
  registry.Add("Split", "", PrepareSplit);
}

}  // namespace pipec::cpu
