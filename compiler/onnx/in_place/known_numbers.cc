#include "compiler/onnx/in_place/known_numbers.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

template <typename T>
std::vector<int64_t> Widen(const std::string& bytes) {
  std::vector<int64_t> numbers(bytes.size() / sizeof(T));
  for (size_t i = 0; i < numbers.size(); ++i) {
    T number;
    std::memcpy(&number, bytes.data() + i * sizeof(T), sizeof(T));
    numbers[i] = static_cast<int64_t>(number);
  }
  return numbers;
}

}  // namespace

absl::StatusOr<std::vector<int64_t>> KnownInts(const Meaning& meaning, absl::string_view what) {
  ASSIGN_OR_RETURN(const Value* value, TensorOf(meaning));
  const DType dtype = value->type.dtype;
  if (dtype != DType::kInt64 && dtype != DType::kInt32 && dtype != DType::kBool) {
    return absl::InvalidArgumentError(absl::StrCat("its ", what, " is ", ToString(value->type)));
  }
  if (value->kind() != ValueKind::kConstant || !value->data.bytes) {
    return absl::UnimplementedError(
        absl::StrCat("its ", what, ", '", value->name(),
                     "', is not known at compile time, which is not supported; --dim "
                     "and --input bind what it may depend on"));
  }
  const std::string& bytes = *value->data.bytes;
  if (dtype == DType::kInt64) return Widen<int64_t>(bytes);
  return dtype == DType::kInt32 ? Widen<int32_t>(bytes) : Widen<uint8_t>(bytes);
}

absl::StatusOr<int64_t> KnownInt(const Meaning& meaning, absl::string_view what) {
  ASSIGN_OR_RETURN(const Value* value, TensorOf(meaning));
  if (value->type.elements() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("its ", what, " must be one number, is ", ToString(value->type)));
  }
  ASSIGN_OR_RETURN(const std::vector<int64_t> numbers, KnownInts(meaning, what));
  return numbers[0];
}

absl::StatusOr<int64_t> AxisFromFront(int64_t axis, int64_t rank) {
  if (axis >= -rank && axis < rank) return axis < 0 ? axis + rank : axis;
  return absl::InvalidArgumentError(absl::StrCat("axis ", axis, " does not exist among ", rank));
}

}  // namespace pipec
