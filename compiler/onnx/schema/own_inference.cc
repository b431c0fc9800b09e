#include "compiler/onnx/schema/own_inference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ops/batch_axes.h"
#include "runtime/base/small_floats.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

using Types = std::optional<std::vector<TensorType>>;

template <typename T>
T First(const std::string& bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

const Value* Operand(const NodeSpec& spec, size_t k) {
  return k < spec.inputs.size() ? spec.inputs[k] : nullptr;
}

// The one element of a constant in memory; null if it is no such constant.
std::optional<double> Number(const Value* value) {
  if (!value || value->kind() != ValueKind::kConstant || !value->data.bytes || value->type.elements() != 1)
    return std::nullopt;
  const std::string& bytes = *value->data.bytes;
  switch (value->type.dtype) {
    case DType::kFloat32:
      return First<float>(bytes);
    case DType::kFloat64:
      return First<double>(bytes);
    case DType::kFloat16:
      return ToFloat(First<Float16>(bytes));
    case DType::kBFloat16:
      return ToFloat(First<BFloat16>(bytes));
    case DType::kInt64:
      return static_cast<double>(First<int64_t>(bytes));
    case DType::kInt32:
      return First<int32_t>(bytes);
    case DType::kInt16:
      return First<int16_t>(bytes);
    default:
      return std::nullopt;
  }
}

absl::StatusOr<Types> InferRange(const NodeSpec& spec) {
  std::optional<double> numbers[3];
  for (int k = 0; k < 3; ++k) {
    numbers[k] = Number(Operand(spec, k));
    if (!numbers[k]) return Types();
  }
  const double start = *numbers[0], limit = *numbers[1], delta = *numbers[2];
  const double length = std::ceil((limit - start) / delta);
  constexpr double kMost = 1e15;  // so that it fits an integer; the limits of tensors are below
  const std::string range = absl::StrCat("Range from ", start, " to ", limit, " by ", delta);
  if (delta == 0 || std::isnan(length)) return absl::InvalidArgumentError(range + " has no length");
  if (length > kMost) return absl::InvalidArgumentError(range + " is more than 16 TiB");
  return Types({{spec.inputs[0]->type.dtype, {static_cast<int64_t>(std::max(0.0, length))}}});
}

// (signal [N, places, 1 or 2], frame_step, window?, frame_length?) -> [N, frames, bins, 2].
absl::StatusOr<Types> InferStft(const NodeSpec& spec) {
  const TensorType& signal = spec.inputs[0]->type;
  const std::optional<double> step = Number(Operand(spec, 1)), length = Number(Operand(spec, 3));
  const Value* const window = Operand(spec, 2);
  if (!step || (Operand(spec, 3) && !length) || signal.shape.size() != 3) return Types();
  const double places = static_cast<double>(signal.shape[1]);
  const double frame = length ? *length : window ? static_cast<double>(window->type.elements()) : places;
  if (!(*step >= 1) || !(frame >= 1) || frame > places) {
    return absl::InvalidArgumentError(absl::StrCat("STFT of a signal ", ToString(signal), ": frames of ",
                                                   frame, " places every ", *step, " are none"));
  }
  const int64_t n = static_cast<int64_t>(frame);
  const int64_t frames = (signal.shape[1] - n) / static_cast<int64_t>(*step) + 1;
  const bool onesided = spec.attributes.Int("onesided", 1) != 0;
  return Types({{signal.dtype, {signal.shape[0], frames, onesided ? n / 2 + 1 : n, 2}}});
}

absl::StatusOr<Types> InferMaxUnpool(const NodeSpec& spec) {
  const auto shape = ConstantInts(Operand(spec, 2));
  if (!shape) return Types();
  return Types({{spec.inputs[0]->type.dtype, Shape(shape->begin(), shape->end())}});
}

}  // namespace

absl::StatusOr<Types> InferOurselves(const NodeSpec& spec) {
  if (!spec.domain.empty()) return Types();
  if (spec.op == "Range") return InferRange(spec);
  if (spec.op == "STFT") return InferStft(spec);
  if (spec.op == "MaxUnpool" && Operand(spec, 2)) return InferMaxUnpool(spec);
  return Types();
}

}  // namespace pipec
