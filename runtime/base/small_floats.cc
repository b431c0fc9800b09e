#include "runtime/base/small_floats.h"

#include <cstring>

namespace pipec {
namespace {

template <typename Small>
void Widen(absl::string_view bytes, std::vector<float>& wide) {
  wide.resize(bytes.size() / sizeof(Small));
  for (size_t i = 0; i < wide.size(); ++i) {
    Small small;
    std::memcpy(&small, bytes.data() + i * sizeof small, sizeof small);
    wide[i] = ToFloat(small);
  }
}

template <typename Small>
std::string Round(absl::Span<const float> values, Small (*convert)(double)) {
  std::string bytes(values.size() * sizeof(Small), '\0');
  for (size_t i = 0; i < values.size(); ++i) {
    const Small small = convert(values[i]);
    std::memcpy(bytes.data() + i * sizeof small, &small, sizeof small);
  }
  return bytes;
}

}  // namespace

bool IsSmallFloat(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBFloat16; }

void ToFloats(DType dtype, absl::string_view bytes, std::vector<float>& wide) {
  dtype == DType::kFloat16 ? Widen<Float16>(bytes, wide) : Widen<BFloat16>(bytes, wide);
}

std::string RoundToSmallFloats(DType dtype, absl::Span<const float> values) {
  return dtype == DType::kFloat16 ? Round(values, ToFloat16) : Round(values, ToBFloat16);
}

}  // namespace pipec
