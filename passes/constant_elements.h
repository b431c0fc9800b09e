// What constants hold, for who looks for patterns.
#pragma once

#include <cstring>
#include <optional>
#include <string>

#include "compiler/ir/graph.h"

namespace pipec {

// Calls with an element's type and the bytes of a constant of floats or bools; nullopt where they are not at hand.
template <typename Visit>
std::optional<double> WithElements(const Value* value, Visit visit) {
  if (!value || value->kind() != ValueKind::kConstant || !value->data.bytes) return std::nullopt;
  const std::string& bytes = *value->data.bytes;
  if (value->type.dtype == DType::kFloat32) return visit(float{}, bytes);
  if (value->type.dtype == DType::kFloat64) return visit(double{}, bytes);
  if (value->type.dtype == DType::kBool) return visit(char{}, bytes);
  return std::nullopt;
}

template <typename T>
double ElementAt(const std::string& bytes, int64_t i) {
  T element;
  std::memcpy(&element, bytes.data() + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return static_cast<double>(element);
}

// The element of a constant that has one.
inline std::optional<double> Number(const Value* value) {
  if (!value || value->type.elements() != 1) return std::nullopt;
  return WithElements(
      value, [](auto zero, const std::string& bytes) { return ElementAt<decltype(zero)>(bytes, 0); });
}

}  // namespace pipec
