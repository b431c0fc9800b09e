#include "compiler/onnx/scope.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/counted.h"

namespace pipec {

std::string Describe(const Meaning& meaning) {
  if (std::holds_alternative<Absent>(meaning)) return "absent";
  if (std::holds_alternative<EmptyOptional>(meaning)) return "an optional without element";
  if (const auto* sequence = std::get_if<Sequence>(&meaning)) {
    return absl::StrCat("a sequence of ", Counted(sequence->elements.size(), "tensor", "tensors"));
  }
  if (const auto* refusal = std::get_if<absl::Status>(&meaning)) return std::string(refusal->message());
  return absl::StrCat("a tensor, ", ToString(std::get<Value*>(meaning)->type));
}

absl::StatusOr<Value*> TensorOrAbsent(const Meaning& meaning) {
  if (const auto* value = std::get_if<Value*>(&meaning)) return *value;
  if (std::holds_alternative<Absent>(meaning)) return nullptr;
  if (const auto* refusal = std::get_if<absl::Status>(&meaning)) return *refusal;
  return absl::InvalidArgumentError(absl::StrCat("wanted a tensor, got ", Describe(meaning)));
}

absl::StatusOr<Value*> TensorOf(const Meaning& meaning) {
  if (std::holds_alternative<Absent>(meaning)) {
    return absl::InvalidArgumentError("wanted a tensor, but the operand is absent");
  }
  return TensorOrAbsent(meaning);
}

const Meaning* Scope::Find(const std::string& name) const {
  for (const Scope* scope = this; scope; scope = scope->outer_) {
    if (auto it = scope->meanings_.find(name); it != scope->meanings_.end()) return &it->second;
  }
  return nullptr;
}

void Scope::Set(const std::string& name, Meaning meaning) {
  if (const auto* value = std::get_if<Value*>(&meaning)) named_.insert(*value);
  meanings_.insert_or_assign(name, std::move(meaning));
}

bool Scope::Names(const Value* value) const {
  for (const Scope* scope = this; scope; scope = scope->outer_) {
    if (scope->named_.contains(value)) return true;
  }
  return false;
}

}  // namespace pipec
