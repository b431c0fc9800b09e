// In which type an op computes under --precision=bf16 or fp16: the op table's column of precision classes.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace pipec {

enum class PrecisionClass : uint8_t {
  kFollow,   // in that of its operands
  kSmall,    // in the 16-bit type: products and convolutions, whose sums are float32 inside
  kFloat32,  // in float32, results too: where 16 bits lose too much, or float16 overflows
  kNorm,     // in float32, but the first result is as good in 16 bits: what is normalised is of moderate size
};

// As torch.autocast decides, but for normalisations, whose results PyTorch leaves in float32. kFollow for an op
// that is not listed.
PrecisionClass PrecisionClassOf(absl::string_view op, absl::string_view domain);

}  // namespace pipec
