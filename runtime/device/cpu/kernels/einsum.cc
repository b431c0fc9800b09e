// Einsum (operands...) -> (Y): the operands are multiplied from the first to
// the last, each time as a batch of matrix products: batch, the labels of both
// that are still needed; rows and columns, those of one; summed over, those of
// both that are not needed any more. What only one operand has and nobody needs
// is summed first, as a product with ones.
#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/einsum_equation.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/matrix_product.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/kernels/strided_copy.h"

namespace pipec::cpu {
namespace {

// In place of an operand: a single 1, or what lies in the workspace.
constexpr int kOnes = -1, kWorkspace = -2;

// A tensor on the way: an operand of the node, or what lies in the workspace.
struct Term {
  int operand = kOnes;  // of the node, or one of the above
  int64_t offset = 0;   // bytes in the workspace
  std::vector<int> labels;
  Shape strides;  // by axis; 0 where it repeats
};

// Two terms laid out for a product, and the product.
struct Step {
  Term a, b;
  StridedCopy copy_a, copy_b;
  int64_t a_offset = 0, b_offset = 0, y_offset = 0;
  std::unique_ptr<Kernel> product;
};

bool Contains(const std::vector<int> &labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

class EinsumKernel : public Kernel {
 public:
  EinsumKernel(DType dtype, EinsumEquation equation) : dtype_(dtype), equation_(std::move(equation)) {
    if (dtype_ == DType::kFloat32) {
      const float one = 1;
      std::memcpy(&one_, &one, sizeof(one));
    } else if (dtype_ == DType::kFloat64) {
      const double one = 1;
      std::memcpy(&one_, &one, sizeof(one));
    } else {
      one_ = 1;  // little-endian: of any size of integer
    }
  }

  absl::Status Build(const KernelSpec &spec) {
    Term current = OperandTerm(spec, 0);
    ASSIGN_OR_RETURN(current, SumAlone(spec, std::move(current), Needed(1)));
    for (size_t k = 1; k < spec.inputs.size(); ++k) {
      std::vector<int> needed = Needed(k + 1);
      Term next = OperandTerm(spec, static_cast<int>(k));
      std::vector<int> here = needed;
      here.insert(here.end(), next.labels.begin(), next.labels.end());
      ASSIGN_OR_RETURN(current, SumAlone(spec, std::move(current), here));
      here = needed;
      here.insert(here.end(), current.labels.begin(), current.labels.end());
      ASSIGN_OR_RETURN(next, SumAlone(spec, std::move(next), here));
      ASSIGN_OR_RETURN(current, Multiply(spec, std::move(current), std::move(next), needed));
    }
    Shape dims, from;
    for (int label : equation_.result) dims.push_back(Dim(label)), from.push_back(StrideOf(current, label));
    last_ = current;
    to_result_ = StridedCopy(SizeOf(dtype_), dims, from, Strides(dims));
    scratch_ = Take(0);
    return absl::OkStatus();
  }

  int64_t workspace_bytes() const override {
    int64_t own = 0;
    for (const Step &step : steps_) own = std::max(own, step.product->workspace_bytes());
    return scratch_ + own;
  }

  absl::Status Launch(Stream &stream, const KernelArguments &arguments) override {
    auto *const workspace = static_cast<std::byte *>(arguments.workspace);
    for (const Step &step : steps_) {
      step.copy_a.Run(AddressOf(step.a, arguments), workspace + step.a_offset);
      step.copy_b.Run(AddressOf(step.b, arguments), workspace + step.b_offset);
      const void *inputs[] = {workspace + step.a_offset, workspace + step.b_offset};
      void *outputs[] = {workspace + step.y_offset};
      RETURN_IF_ERROR(
          step.product->Launch(stream, {inputs, outputs, arguments.scalars, workspace + scratch_}));
    }
    to_result_.Run(AddressOf(last_, arguments), arguments.outputs[0]);
    return absl::OkStatus();
  }

 private:
  int64_t Dim(int label) const { return equation_.dims[label]; }

  // The labels that the result and the operands from `next` on have.
  std::vector<int> Needed(size_t next) const {
    std::vector<int> labels = equation_.result;
    for (size_t k = next; k < equation_.operands.size(); ++k) {
      labels.insert(labels.end(), equation_.operands[k].begin(), equation_.operands[k].end());
    }
    return labels;
  }

  // A label that comes twice is a diagonal; an axis of 1 among longer ones
  // repeats.
  Term OperandTerm(const KernelSpec &spec, int k) const {
    const Shape &shape = spec.inputs[k].type.shape;
    const Shape strides = Strides(shape);
    Term term{.operand = k};
    for (size_t i = 0; i < shape.size(); ++i) {
      const int label = equation_.operands[k][i];
      auto it = std::find(term.labels.begin(), term.labels.end(), label);
      const size_t axis = it - term.labels.begin();
      if (it == term.labels.end()) term.labels.push_back(label), term.strides.push_back(0);
      if (shape[i] == Dim(label)) term.strides[axis] += strides[i];
    }
    return term;
  }

  static int64_t StrideOf(const Term &term, int label) {
    const size_t axis = std::find(term.labels.begin(), term.labels.end(), label) - term.labels.begin();
    return axis == term.labels.size() ? 0 : term.strides[axis];
  }

  int64_t Take(int64_t elements) {
    const int64_t at = taken_;
    taken_ += (elements * SizeOf(dtype_) + 63) / 64 * 64;
    return at;
  }

  const void *AddressOf(const Term &term, const KernelArguments &arguments) const {
    if (term.operand == kOnes) return &one_;
    if (term.operand >= 0) return arguments.inputs[term.operand];
    return static_cast<const std::byte *>(arguments.workspace) + term.offset;
  }

  // The term without the labels that are not in `needed`.
  absl::StatusOr<Term> SumAlone(const KernelSpec &spec, Term term, const std::vector<int> &needed) {
    std::vector<int> gone;
    for (int label : term.labels) {
      if (!Contains(needed, label)) gone.push_back(label);
    }
    if (gone.empty()) return term;
    Term ones{.operand = kOnes, .labels = gone, .strides = Shape(gone.size(), 0)};
    return Multiply(spec, std::move(term), std::move(ones), needed);
  }

  absl::StatusOr<Term> Multiply(const KernelSpec &spec, Term a, Term b, const std::vector<int> &needed) {
    std::vector<int> batch, rows, columns, summed;
    for (int label : a.labels) {
      const bool kept = Contains(needed, label);
      (!Contains(b.labels, label) ? rows : kept ? batch : summed).push_back(label);
    }
    for (int label : b.labels) {
      if (!Contains(a.labels, label)) columns.push_back(label);
    }
    Step step;
    MatrixProduct product;
    product.dtype = dtype_;
    int64_t batches = 1;
    for (int label : batch) batches *= Dim(label);
    for (int label : rows) product.m *= Dim(label);
    for (int label : columns) product.n *= Dim(label);
    for (int label : summed) product.k *= Dim(label);
    product.a_batch = product.b_batch = product.y_batch = {batches};
    step.a_offset = Take(batches * product.m * product.k);
    step.b_offset = Take(batches * product.k * product.n);
    step.y_offset = Take(batches * product.m * product.n);
    const auto lay_out = [&](const Term &term, std::initializer_list<const std::vector<int> *> order) {
      Shape dims, strides;
      for (const std::vector<int> *labels : order) {
        for (int label : *labels) dims.push_back(Dim(label)), strides.push_back(StrideOf(term, label));
      }
      return StridedCopy(SizeOf(dtype_), dims, strides, Strides(dims));
    };
    Term y{.operand = kWorkspace, .offset = step.y_offset};
    for (const std::vector<int> *labels : {&batch, &rows, &columns}) {
      y.labels.insert(y.labels.end(), labels->begin(), labels->end());
    }
    if (y.labels.size() + summed.size() > StridedCopy::kCopyRank) {
      return absl::UnimplementedError(absl::StrCat("node '", spec.name, "' (Einsum): more than ",
                                                   StridedCopy::kCopyRank, " axes at once"));
    }
    step.copy_a = lay_out(a, {&batch, &rows, &summed});
    step.copy_b = lay_out(b, {&batch, &summed, &columns});
    Shape dims;
    for (int label : y.labels) dims.push_back(Dim(label));
    y.strides = Strides(dims);
    ASSIGN_OR_RETURN(step.product, MakeProduct(spec, product));
    step.a = std::move(a), step.b = std::move(b);
    steps_.push_back(std::move(step));
    return y;
  }

  const DType dtype_;
  const EinsumEquation equation_;
  uint64_t one_ = 0;  // the element's bytes come first
  std::vector<Step> steps_;
  Term last_;
  StridedCopy to_result_;
  int64_t taken_ = 0, scratch_ = 0;
};

absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec &spec) {
  const int n = std::max<int>(static_cast<int>(spec.inputs.size()), 1);
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = n, .max_inputs = n}));
  const DType dtype = spec.inputs[0].type.dtype;
  for (int k = 1; k < n; ++k) RETURN_IF_ERROR(CheckInputType(spec, k, dtype));
  if (SizeOf(dtype) < 4) return NoKernelFor(spec, dtype);
  ASSIGN_OR_RETURN(EinsumEquation equation, ReadEinsum(spec));
  Shape shape;
  for (int label : equation.result) shape.push_back(equation.dims[label]);
  RETURN_IF_ERROR(CheckOutput(spec, 0, {dtype, shape}));
  auto kernel = std::make_unique<EinsumKernel>(dtype, std::move(equation));
  RETURN_IF_ERROR(kernel->Build(spec));
  return kernel;
}

}  // namespace

void RegisterEinsumKernels(KernelRegistry &registry) { registry.Add("Einsum", "", Prepare); }

}  // namespace pipec::cpu
