// Dropout and its gradient, whose mask is drawn from Philox4x32-10 as compiler/ops/README.md says: in int64,
// whose operators every runtime has, with words below 2^32.
#include <cmath>

#include "compiler/onnx/bodies/families.h"

namespace pipec {
namespace {

using Name = Body::Name;

constexpr double kTwoTo16 = 65536, kTwoTo32 = 4294967296.0;

class Philox {
 public:
  explicit Philox(Body& b) : b_(b) {}

  Name Number(double value) { return b_.Scalar(DType::kInt64, value); }

  // Word e mod 4 of the counter (e / 4, key, step, sample) under the key `seed`.
  Name Draw(const Name& element, const Name& key, const Name& sample) {
    const Name four = Number(4), low = Number(kTwoTo32);
    words_[0] = b_.Op("Mod", {b_.Div(element, four), low});
    words_[1] = key;
    words_[2] = b_.Op("Mod", {"step", low});
    words_[3] = sample;
    Name key0 = b_.Op("Mod", {"seed", low}), key1 = b_.Div("seed", low);
    for (int round = 0; round < 10; ++round) {
      Round(key0, key1);
      key0 = b_.Op("Mod", {b_.Add(key0, Number(0x9E3779B9)), low});
      key1 = b_.Op("Mod", {b_.Add(key1, Number(0xBB67AE85)), low});
    }
    const Name which = b_.Op("Mod", {element, four});
    Name word = words_[3];
    for (int k = 2; k >= 0; --k) word = b_.Where(b_.Op("Equal", {which, Number(k)}), words_[k], word);
    return word;
  }

 private:
  struct Product {
    Name high, low;
  };

  // Of two numbers below 2^32, in two steps that stay below 2^63.
  Product Multiply(double constant, const Name& x) {
    const Name half = Number(kTwoTo16), high = Number(std::floor(constant / kTwoTo16)),
               low = Number(std::fmod(constant, kTwoTo16));
    const Name by_low = b_.Mul(low, x);
    const Name middle = b_.Add(b_.Mul(high, x), b_.Div(by_low, half));
    return {b_.Div(middle, half),
            b_.Add(b_.Mul(b_.Op("Mod", {middle, half}), half), b_.Op("Mod", {by_low, half}))};
  }

  Name Xor(Name a, Name b, Name c) {
    return b_.Op("BitwiseXor", {b_.Op("BitwiseXor", {std::move(a), std::move(b)}), std::move(c)});
  }

  void Round(const Name& key0, const Name& key1) {
    const Product p0 = Multiply(0xD2511F53, words_[0]), p1 = Multiply(0xCD9E8D57, words_[2]);
    words_[0] = Xor(p1.high, words_[1], key0);
    words_[2] = Xor(p0.high, words_[3], key1);
    words_[1] = p1.low;
    words_[3] = p0.low;
  }

  Body& b_;
  Name words_[4];
};

// Whether each element of operand 0 is kept; bool.
Name Mask(Body& b, double ratio) {
  const Shape& shape = b.shape(0);
  const int64_t axis = b.attributes().Int("batch_axis", 0), elements = b.type(0).elements();
  const bool known = axis >= 0 && !shape.empty() && elements > 0;
  Philox philox(b);
  const auto number = [&](int64_t value) { return philox.Number(static_cast<double>(value)); };
  const Name place = b.Op("Range", {number(0), number(elements), number(1)});
  Name element = place, sample = number(0);
  if (known) {
    // Elements of one sample that lie together in memory.
    const int64_t count = b.attributes().Int("samples", shape[axis]);
    const int64_t inner = shape[axis] / count * NumElements(absl::MakeSpan(shape).subspan(axis + 1));
    const Name run = b.Div(place, number(inner));
    sample = b.Op("Mod", {b.Add("first_sample", b.Op("Mod", {run, number(count)})), philox.Number(kTwoTo32)});
    element = b.Add(b.Mul(b.Div(run, number(count)), number(inner)), b.Op("Mod", {place, number(inner)}));
  }
  const auto key = static_cast<uint32_t>(b.attributes().Int("key"));
  const Name word = philox.Draw(element, number(key), sample);
  const Name threshold = philox.Number(std::ceil(ratio * kTwoTo32));
  return b.Reshape(b.Op("GreaterOrEqual", {word, threshold}), shape);
}

// Both: (X) -> (Y, mask?) and (dY) -> (dX), in training.
void Dropout(Body& b) {
  const DType dtype = b.type(0).dtype;
  const double ratio = b.attributes().Float("ratio", 0.5f);
  const Name mask = Mask(b, ratio), scale = b.Scalar(dtype, ratio < 1 ? 1 / (1 - ratio) : 0);
  b.Result(0, b.Where(mask, b.Mul(b.in(0), scale), b.Scalar(dtype, 0)));
  if (b.node().outputs().size() > 1) b.Result(1, mask);
}

const BodyRow kRows[] = {
    {"Dropout", "X", "seed step first_sample", Dropout},
    {"DropoutGrad", "dY", "seed step first_sample", Dropout},
};

}  // namespace

absl::Span<const BodyRow> DropoutBodies() { return kRows; }

}  // namespace pipec
