#include "runtime/device/operands/own_casts.h"

namespace pipec {
namespace {

constexpr char kTo[] = "to";

}  // namespace

bool HasOwnCasts(const KernelSpec& spec) {
  if (!spec.attributes.Has(kTo)) return false;
#define CASTS(domain_, op_, first, last, result) \
  if (spec.op == (op_) && spec.domain == (domain_)) return true;
#include "runtime/device/ops.def"
  return false;
}

DType ComputedType(const KernelSpec& spec, DType operand) {
  return spec.attributes.Has(kTo) ? DType::kFloat32 : operand;
}

DType CastResultType(const KernelSpec& spec, DType operand) {
  return spec.attributes.Has(kTo) ? static_cast<DType>(spec.attributes.Int(kTo)) : operand;
}

}  // namespace pipec
