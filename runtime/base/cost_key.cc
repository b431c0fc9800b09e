#include "runtime/base/cost_key.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace pipec {
namespace {

constexpr int64_t kMostOfADim = int64_t{1} << 50;

constexpr absl::string_view kNames[] = {"eval_only", "key", "order", "parameter"};

struct Printed {
  std::string operator()(int64_t value) const { return absl::StrCat(value); }
  std::string operator()(float) const { return ""; }
  std::string operator()(const std::string& value) const { return value; }
  std::string operator()(const std::vector<int64_t>& values) const { return absl::StrJoin(values, ":"); }
  std::string operator()(const std::vector<float>&) const { return ""; }
  std::string operator()(const std::vector<std::string>& values) const { return absl::StrJoin(values, ":"); }
  std::string operator()(const TensorLiteral& literal) const { return ToString(literal.type); }
};

bool Matters(absl::string_view name, const Attribute& value) {
  return std::find(std::begin(kNames), std::end(kNames), name) == std::end(kNames) &&
         !std::holds_alternative<float>(value) && !std::holds_alternative<std::vector<float>>(value);
}

std::string Types(absl::Span<const TensorType> types) {
  return absl::StrJoin(types, ",", [](std::string* out, const TensorType& type) {
    absl::StrAppend(out, type.dtype == DType::kUndefined ? "-" : ToString(type));
  });
}

}  // namespace

std::string CostKey(absl::string_view domain, absl::string_view op, const Attributes& attributes,
                    absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) {
  std::string key = absl::StrCat(domain, domain.empty() ? "" : ".", op);
  absl::string_view separator = "[";
  for (const auto& [name, value] : attributes) {
    if (!Matters(name, value)) continue;
    absl::StrAppend(&key, separator, name, "=", std::visit(Printed(), value));
    separator = ",";
  }
  if (separator == ",") key += "]";
  return absl::StrCat(key, "(", Types(inputs), ")->", Types(outputs));
}

CostKeyParts SplitCostKey(absl::string_view key) {
  CostKeyParts parts;
  // Attributes may be any text, but types are not: they begin at the last parenthesis.
  const size_t types = std::min(key.rfind('('), key.size());
  const size_t op = std::min(key.find('['), types);
  parts.op_and_dtypes = std::string(key.substr(0, op));
  parts.attributes = std::string(key.substr(op, types - op));
  bool in_shape = false, in_number = false;
  for (const char c : key.substr(types)) {
    if (in_shape && absl::ascii_isdigit(c)) {
      if (!in_number) parts.dims.push_back(0);
      in_number = true;
      if (parts.dims.back() < kMostOfADim) parts.dims.back() = 10 * parts.dims.back() + (c - '0');
      continue;
    }
    in_number = false;
    if (c == '[') in_shape = true;
    if (!in_shape) parts.op_and_dtypes += c;
    if (in_shape || !absl::ascii_isalnum(c)) parts.ranks += c;
    if (c == ']') in_shape = false;
  }
  return parts;
}

}  // namespace pipec
