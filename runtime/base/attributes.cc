#include "runtime/base/attributes.h"

namespace pipec {

void Attributes::Erase(absl::string_view name) {
  if (auto it = map_.find(name); it != map_.end()) map_.erase(it);
}

int64_t Attributes::Int(absl::string_view name, int64_t otherwise) const {
  const auto* value = Get<int64_t>(name);
  return value ? *value : otherwise;
}

float Attributes::Float(absl::string_view name, float otherwise) const {
  const auto* value = Get<float>(name);
  return value ? *value : otherwise;
}

std::string Attributes::String(absl::string_view name, absl::string_view otherwise) const {
  const auto* value = Get<std::string>(name);
  return value ? *value : std::string(otherwise);
}

std::vector<int64_t> Attributes::Ints(absl::string_view name) const {
  const auto* value = Get<std::vector<int64_t>>(name);
  return value ? *value : std::vector<int64_t>();
}

std::vector<float> Attributes::Floats(absl::string_view name) const {
  const auto* value = Get<std::vector<float>>(name);
  return value ? *value : std::vector<float>();
}

std::vector<std::string> Attributes::Strings(absl::string_view name) const {
  const auto* value = Get<std::vector<std::string>>(name);
  return value ? *value : std::vector<std::string>();
}

const TensorLiteral* Attributes::Tensor(absl::string_view name) const { return Get<TensorLiteral>(name); }

}  // namespace pipec
