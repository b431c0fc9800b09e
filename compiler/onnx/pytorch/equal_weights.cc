#include "compiler/onnx/pytorch/equal_weights.h"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

namespace pipec {
namespace {

// Beyond so many of one key they are no copies of a few weights, but somebody's way to spend time.
constexpr size_t kMostCompared = 16;

// What a matrix and its transpose have in common and costs nothing to read.
using Key = std::tuple<DType, Shape, std::string, std::string>;

Key KeyOf(const Value& value) {
  const std::string& bytes = *value.data.bytes;
  const size_t size = SizeOf(value.type.dtype);
  Shape sorted = value.type.shape;
  std::sort(sorted.begin(), sorted.end());
  return {value.type.dtype, std::move(sorted), bytes.substr(0, size), bytes.substr(bytes.size() - size)};
}

bool IsCandidate(const Value& value) {
  if (value.kind() != ValueKind::kParameter || value.uses().empty() || !value.data.bytes) return false;
  const std::string& bytes = *value.data.bytes;
  const size_t size = SizeOf(value.type.dtype);
  if (value.type.shape.size() < 2 || bytes.size() < 2 * size || bytes.size() != value.type.bytes())
    return false;
  // Shifted by one element it differs from itself, unless all are equal.
  return std::memcmp(bytes.data(), bytes.data() + size, bytes.size() - size) != 0;
}

bool IsTransposed(const Value& a, const Value& b) {
  if (a.type.shape.size() != 2 || a.type.shape[0] != b.type.shape[1] || a.type.shape[1] != b.type.shape[0])
    return false;
  const int64_t rows = a.type.shape[0], columns = a.type.shape[1], size = SizeOf(a.type.dtype);
  const char* from = a.data.bytes->data();
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      if (std::memcmp(from + (r * columns + c) * size, b.data.bytes->data() + (c * rows + r) * size, size) !=
          0) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace

std::vector<std::string> NoteEqualWeights(const Graph& graph) {
  std::vector<std::string> notes;
  absl::flat_hash_map<Key, std::vector<const Value*>> met;
  for (const Value* value : graph.Values()) {
    if (!IsCandidate(*value)) continue;
    std::vector<const Value*>& others = met[KeyOf(*value)];
    for (const Value* other : others) {
      const bool same = other->type == value->type && *other->data.bytes == *value->data.bytes;
      if (!same && !IsTransposed(*other, *value)) continue;
      notes.push_back(
          absl::StrCat("parameters '", other->name(), "' and '", value->name(), "' hold the same numbers",
                       same ? "" : ", one transposed",
                       ", but are two initializers and learn apart; where the model ties them, export it "
                       "without folding constants"));
      break;
    }
    if (others.size() < kMostCompared) others.push_back(value);
  }
  return notes;
}

}  // namespace pipec
