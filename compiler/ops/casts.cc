#include "compiler/ops/casts.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/small_floats.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

struct Row {
  absl::string_view domain, op;
  OwnCasts casts;
};

#define CASTS(domain, op, first, last, result) {domain, op, {first, last, (result) != 0}},
constexpr Row kRows[] = {
#include "runtime/device/ops.def"
};

}  // namespace

const OwnCasts* OwnCastsOf(absl::string_view op, absl::string_view domain) {
  for (const Row& row : kRows) {
    if (row.op == op && (domain == row.domain || domain.empty())) return &row.casts;
  }
  return nullptr;
}

InferredTypes InferBetweenCasts(const NodeSpec& spec, InferredTypes (*infer)(const NodeSpec& spec)) {
  const OwnCasts* const casts = OwnCastsOf(spec.op, spec.domain);
  if (!casts || !spec.attributes.Has(kCastTo)) return infer(spec);
  NodeSpec wide = spec;
  Graph behind;  // what the casts would make
  for (int k = casts->first; k <= casts->last; ++k) {
    if (!Present(spec, k) || !IsSmallFloat(TypeOf(spec, k).dtype)) continue;
    wide.inputs[k] = behind.AddValue(ValueKind::kInput, "x", {DType::kFloat32, TypeOf(spec, k).shape});
  }
  ASSIGN_OR_RETURN(std::vector<TensorType> types, infer(wide));
  const auto to = static_cast<DType>(spec.attributes.Int(kCastTo));
  const bool small = casts->result && IsSmallFloat(to);
  if (types[0].dtype != DType::kFloat32 || (to != DType::kFloat32 && !small))
    return BadOperands(spec, absl::StrCat("attribute to makes ", Name(types[0].dtype), " ", Name(to)));
  types[0].dtype = to;
  return types;
}

}  // namespace pipec
