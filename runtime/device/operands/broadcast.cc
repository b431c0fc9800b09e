#include "runtime/device/operands/broadcast.h"

#include "absl/strings/str_cat.h"

namespace pipec {

absl::StatusOr<Shape> BroadcastShape(absl::Span<const Shape> shapes) {
  Shape result;
  for (const Shape& shape : shapes) {
    while (result.size() < shape.size()) result.insert(result.begin(), 1);
    for (size_t i = 0; i < shape.size(); ++i) {
      int64_t& dim = result[result.size() - shape.size() + i];
      if (shape[i] == dim || shape[i] == 1) continue;
      if (dim != 1) {
        return absl::InvalidArgumentError(
            absl::StrCat("shape ", ToString(shape), " does not broadcast to ", ToString(result)));
      }
      dim = shape[i];
    }
  }
  return result;
}

}  // namespace pipec
