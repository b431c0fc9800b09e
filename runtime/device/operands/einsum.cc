#include "runtime/device/operands/einsum.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/operands/check.h"
#include "runtime/device/operands/einsum_equation.h"

namespace pipec {
namespace {

bool Contains(const std::vector<int> &labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

class EinsumPlanner {
 public:
  EinsumPlanner(DType dtype, EinsumEquation equation) : dtype_(dtype), equation_(std::move(equation)) {}

  absl::StatusOr<EinsumPlan> Build(const KernelSpec &spec) {
    EinsumTerm current = OperandTerm(spec, 0);
    ASSIGN_OR_RETURN(current, SumAlone(spec, std::move(current), Needed(1)));
    for (size_t k = 1; k < spec.inputs.size(); ++k) {
      std::vector<int> needed = Needed(k + 1);
      EinsumTerm next = OperandTerm(spec, static_cast<int>(k));
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
    plan_.last = current;
    plan_.to_result = {dims, from, Strides(dims)};
    plan_.bytes = Take(0);
    return std::move(plan_);
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
  EinsumTerm OperandTerm(const KernelSpec &spec, int k) const {
    const Shape &shape = spec.inputs[k].type.shape;
    const Shape strides = Strides(shape);
    EinsumTerm term{.operand = k};
    for (size_t i = 0; i < shape.size(); ++i) {
      const int label = equation_.operands[k][i];
      auto it = std::find(term.labels.begin(), term.labels.end(), label);
      const size_t axis = it - term.labels.begin();
      if (it == term.labels.end()) term.labels.push_back(label), term.strides.push_back(0);
      if (shape[i] == Dim(label)) term.strides[axis] += strides[i];
    }
    return term;
  }

  static int64_t StrideOf(const EinsumTerm &term, int label) {
    const size_t axis = std::find(term.labels.begin(), term.labels.end(), label) - term.labels.begin();
    return axis == term.labels.size() ? 0 : term.strides[axis];
  }

  int64_t Take(int64_t elements) {
    const int64_t at = taken_;
    taken_ += (elements * SizeOf(dtype_) + 63) / 64 * 64;
    return at;
  }

  // The term without the labels that are not in `needed`.
  absl::StatusOr<EinsumTerm> SumAlone(const KernelSpec &spec, EinsumTerm term,
                                      const std::vector<int> &needed) {
    std::vector<int> gone;
    for (int label : term.labels) {
      if (!Contains(needed, label)) gone.push_back(label);
    }
    if (gone.empty()) return term;
    EinsumTerm ones{.operand = kEinsumOnes, .labels = gone, .strides = Shape(gone.size(), 0)};
    return Multiply(spec, std::move(term), std::move(ones), needed);
  }

  absl::StatusOr<EinsumTerm> Multiply(const KernelSpec &spec, EinsumTerm a, EinsumTerm b,
                                      const std::vector<int> &needed) {
    std::vector<int> batch, rows, columns, summed;
    for (int label : a.labels) {
      const bool kept = Contains(needed, label);
      (!Contains(b.labels, label) ? rows : kept ? batch : summed).push_back(label);
    }
    for (int label : b.labels) {
      if (!Contains(a.labels, label)) columns.push_back(label);
    }
    EinsumStep step;
    MatrixProduct &product = step.product;
    product.dtype = product.result = dtype_;
    int64_t batches = 1;
    for (int label : batch) batches *= Dim(label);
    for (int label : rows) product.m *= Dim(label);
    for (int label : columns) product.n *= Dim(label);
    for (int label : summed) product.k *= Dim(label);
    product.a_batch = product.b_batch = product.y_batch = {batches};
    step.a_offset = Take(batches * product.m * product.k);
    step.b_offset = Take(batches * product.k * product.n);
    step.y_offset = Take(batches * product.m * product.n);
    const auto lay_out = [&](const EinsumTerm &term, std::initializer_list<const std::vector<int> *> order) {
      Shape dims, strides;
      for (const std::vector<int> *labels : order) {
        for (int label : *labels) dims.push_back(Dim(label)), strides.push_back(StrideOf(term, label));
      }
      return StridedMove{dims, strides, Strides(dims)};
    };
    EinsumTerm y{.operand = kEinsumWorkspace, .offset = step.y_offset};
    for (const std::vector<int> *labels : {&batch, &rows, &columns}) {
      y.labels.insert(y.labels.end(), labels->begin(), labels->end());
    }
    if (y.labels.size() + summed.size() > kMoveRank) {
      return absl::UnimplementedError(
          absl::StrCat("node '", spec.name, "' (Einsum): more than ", kMoveRank, " axes at once"));
    }
    step.move_a = lay_out(a, {&batch, &rows, &summed});
    step.move_b = lay_out(b, {&batch, &summed, &columns});
    Shape dims;
    for (int label : y.labels) dims.push_back(Dim(label));
    y.strides = Strides(dims);
    step.a = std::move(a), step.b = std::move(b);
    plan_.steps.push_back(std::move(step));
    return y;
  }

  const DType dtype_;
  const EinsumEquation equation_;
  EinsumPlan plan_;
  int64_t taken_ = 0;
};

}  // namespace

absl::StatusOr<EinsumPlan> EinsumPlanOf(const KernelSpec &spec) {
  const int n = std::max<int>(static_cast<int>(spec.inputs.size()), 1);
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = n, .max_inputs = n}));
  const DType dtype = spec.inputs[0].type.dtype;
  for (int k = 1; k < n; ++k) RETURN_IF_ERROR(CheckInputType(spec, k, dtype));
  if (SizeOf(dtype) < 4) return NoKernelFor(spec, dtype);
  ASSIGN_OR_RETURN(EinsumEquation equation, ReadEinsum(spec));
  Shape shape;
  for (int label : equation.result) shape.push_back(equation.dims[label]);
  RETURN_IF_ERROR(CheckOutput(spec, 0, {dtype, shape}));
  return EinsumPlanner(dtype, std::move(equation)).Build(spec);
}

}  // namespace pipec
