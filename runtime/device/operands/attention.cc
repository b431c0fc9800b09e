#include "runtime/device/operands/attention.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "absl/strings/str_cat.h"
#include "runtime/base/small_floats.h"
#include "runtime/base/status.h"
#include "runtime/device/operands/check.h"

namespace pipec {
namespace {

// Known contents that change no score: exporters write such masks where nothing is masked.
bool HidesNothing(const KernelOperand& mask) {
  if (mask.constant == nullptr) return false;
  const int64_t bytes = mask.type.bytes();
  const auto is = [&](std::byte wanted) {
    return std::all_of(mask.constant, mask.constant + bytes, [&](std::byte each) { return each == wanted; });
  };
  return is(std::byte(mask.type.dtype == DType::kBool ? 1 : 0));
}

absl::Status ReadMask(const KernelSpec& spec, int k, DType sums, Attention& a) {
  if (!Has(spec, k)) return absl::OkStatus();
  const TensorType& type = spec.inputs[k].type;
  Shape wanted = a.heads;
  wanted.insert(wanted.end(), {a.rows, a.columns});
  const auto wrong = [&] {
    return Invalid(spec, absl::StrCat("the mask is ", ToString(type), ", wanted bool or ", Name(sums),
                                      " that broadcasts to ", ToString(wanted)));
  };
  if (type.shape.size() > wanted.size() || (type.dtype != DType::kBool && type.dtype != sums)) return wrong();
  if (HidesNothing(spec.inputs[k])) return absl::OkStatus();
  a.mask = type.dtype == DType::kBool ? Attention::Mask::kChosen : Attention::Mask::kAdded;
  Shape steps(wanted.size(), 0);
  int64_t step = 1;
  for (size_t i = 1; i <= type.shape.size(); ++i) {
    const int64_t dim = type.shape[type.shape.size() - i];
    if (dim != 1 && dim != wanted[wanted.size() - i]) return wrong();
    if (dim != 1) steps[wanted.size() - i] = step;
    step *= dim;
  }
  a.mask_column_step = steps.back();
  a.mask_row_step = steps[steps.size() - 2];
  a.mask_steps.assign(steps.begin(), steps.end() - 2);
  return absl::OkStatus();
}

// Q, K, V from operand `q` on.
absl::StatusOr<Attention> Read(const KernelSpec& spec, int q, int mask) {
  const TensorType &query = spec.inputs[q].type, &key = spec.inputs[q + 1].type,
                   &value = spec.inputs[q + 2].type;
  const size_t rank = query.shape.size();
  if (rank < 2 || key.shape.size() != rank || value.shape.size() != rank) {
    return Invalid(spec, absl::StrCat("Q, K and V are ", ToString(query), ", ", ToString(key), " and ",
                                      ToString(value), ", wanted one rank of 2 or more"));
  }
  Attention a;
  a.dtype = query.dtype;
  a.heads.assign(query.shape.begin(), query.shape.end() - 2);
  a.rows = query.shape[rank - 2];
  a.depth = query.shape[rank - 1];
  a.columns = key.shape[rank - 2];
  a.width = value.shape[rank - 1];
  a.scale = spec.attributes.Float("scale", 1);
  a.fill = spec.attributes.Float("fill", -std::numeric_limits<float>::infinity());
  a.causal = spec.attributes.Int("causal") != 0;
  a.zero_rows = spec.attributes.Int("zero_rows") != 0;
  const auto operand = [&](int64_t rows, int64_t columns) {
    TensorType type{a.dtype, a.heads};
    type.shape.insert(type.shape.end(), {rows, columns});
    return type;
  };
  RETURN_IF_ERROR(CheckInput(spec, q + 1, operand(a.columns, a.depth)));
  RETURN_IF_ERROR(CheckInput(spec, q + 2, operand(a.columns, a.width)));
  if (a.head_count() * a.rows * a.columns * a.depth * a.width == 0) return Invalid(spec, "an axis is empty");
  if (a.causal && a.rows != a.columns)
    return Invalid(spec, absl::StrCat("causal with ", a.rows, " rows and ", a.columns, " columns"));
  RETURN_IF_ERROR(ReadMask(spec, mask, IsSmallFloat(a.dtype) ? DType::kFloat32 : a.dtype, a));
  return a;
}

TensorType Output(const Attention& a) {
  TensorType type{a.dtype, a.heads};
  type.shape.insert(type.shape.end(), {a.rows, a.width});
  return type;
}

TensorType LogSumExp(const Attention& a) {
  TensorType type{IsSmallFloat(a.dtype) ? DType::kFloat32 : a.dtype, a.heads};
  type.shape.push_back(a.rows);
  return type;
}

}  // namespace

int64_t Attention::MaskAt(int64_t head) const {
  int64_t at = 0;
  for (size_t i = heads.size(); i-- > 0 && !mask_steps.empty(); head /= heads[i])
    at += head % heads[i] * mask_steps[i];
  return at;
}

absl::StatusOr<Attention> Attention::Of(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {3, 4, 1, 2}));
  ASSIGN_OR_RETURN(Attention a, Read(spec, 0, 3));
  RETURN_IF_ERROR(CheckOutput(spec, 0, Output(a)));
  if (HasOutput(spec, 1)) RETURN_IF_ERROR(CheckOutput(spec, 1, LogSumExp(a)));
  return a;
}

absl::StatusOr<Attention> Attention::OfGrad(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {6, 7, 3, 3}));
  ASSIGN_OR_RETURN(Attention a, Read(spec, 1, 6));
  for (int k : {0, 4}) RETURN_IF_ERROR(CheckInput(spec, k, Output(a)));
  RETURN_IF_ERROR(CheckInput(spec, 5, LogSumExp(a)));
  for (int k = 0; k < 3; ++k) RETURN_IF_ERROR(CheckOutput(spec, k, spec.inputs[k + 1].type));
  return a;
}

}  // namespace pipec
