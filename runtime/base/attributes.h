// Attributes of an operator: the same type in the compiler's graph, in a plan's instruction and in
// front of a kernel.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "runtime/base/tensor_type.h"

namespace pipec {

// A small tensor with its contents (row-major, host byte order), as in the attributes of Constant.
struct TensorLiteral {
  TensorType type;
  std::shared_ptr<const std::string> bytes;
};

using Attribute = std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>,
                               std::vector<std::string>, TensorLiteral>;

class Attributes {
 public:
  using Map = std::map<std::string, Attribute, std::less<>>;

  void Set(absl::string_view name, Attribute value) { map_.insert_or_assign(std::string(name), std::move(value)); }
  void Erase(absl::string_view name);
  bool Has(absl::string_view name) const { return map_.find(name) != map_.end(); }

  // The attribute, or the default if it is absent or of another type (the onnx checker has refused
  // other types by then; pipec's own ops are written by pipec).
  int64_t Int(absl::string_view name, int64_t otherwise = 0) const;
  float Float(absl::string_view name, float otherwise = 0) const;
  std::string String(absl::string_view name, absl::string_view otherwise = "") const;
  std::vector<int64_t> Ints(absl::string_view name) const;
  std::vector<float> Floats(absl::string_view name) const;
  std::vector<std::string> Strings(absl::string_view name) const;
  // Null if absent.
  const TensorLiteral* Tensor(absl::string_view name) const;

  bool empty() const { return map_.empty(); }
  Map::const_iterator begin() const { return map_.begin(); }
  Map::const_iterator end() const { return map_.end(); }

 private:
  template <typename T>
  const T* Get(absl::string_view name) const {
    auto it = map_.find(name);
    return it == map_.end() ? nullptr : std::get_if<T>(&it->second);
  }

  Map map_;
};

}  // namespace pipec
