// Types of at most 8 bits that weights are quantised to: four float8 formats, float8_e8m0fnu (a power of
// two), float4_e2m1fn, integers of 4 and 2 bits. They are stored, moved and converted, never computed in.
// In memory an element is a byte: a float's code, an integer as int8 or uint8.
// Source: the tables of ONNX's Cast (opset 25) and its page on float8 types.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "runtime/base/dtype.h"

namespace pipec {

bool IsTiny(DType dtype);
// Of the tiny types: whether it is one of the integers.
bool IsTinyInteger(DType dtype);
struct TinyRange {
  int least, most;
};
TinyRange RangeOf(DType tiny_integer);

// The number that a byte stands for; of an integer, the bits beyond its type's do not count.
double DecodeTiny(DType dtype, uint8_t byte);

// How numbers are rounded to powers of two (Cast's round_mode); all else rounds to the nearest, ties to even.
enum class PowerRounding : uint8_t { kUp, kDown, kNearest };

// From numbers to bytes of one type.
class TinyEncoder {
 public:
  // `saturate`: a float out of range becomes the nearest in it; else infinite if the type has that, else NaN
  // (float4 has neither: the nearest always, and NaN becomes -0).
  TinyEncoder(DType dtype, bool saturate, PowerRounding rounding = PowerRounding::kUp);

  // Floats: the nearest, ties to even. Integers: truncated, the low bits.
  uint8_t operator()(double x) const;

 private:
  uint8_t Power(double x) const;

  DType dtype_;
  bool saturate_;
  PowerRounding rounding_;
};

// The byte of an integer type that holds the low bits of `value`.
uint8_t WrapTiny(DType tiny_integer, int64_t value);

// Bytes that `elements` take in a model file, where those of 4 and 2 bits lie together, the first lowest.
uint64_t BytesInFile(DType dtype, int64_t elements);
// From a file's bytes to memory's and back, for types of 4 and 2 bits. packed: BytesInFile(dtype, elements)
// bytes.
std::string UnpackElements(DType dtype, absl::string_view packed, int64_t elements);
std::string PackElements(DType dtype, absl::string_view bytes);

}  // namespace pipec
