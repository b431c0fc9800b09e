#include "passes/gradients/interpolation.h"

namespace pipec {
namespace {

Value* AsFloat(GradientBuilder& b, Value* condition, DType dtype) {
  Attributes to;
  to.Set("to", static_cast<int64_t>(dtype));
  return b.Emit("Cast", {condition}, std::move(to));
}

// f(index, taps): the flat index of every combination of taps, int64 [blocks, rows, points], and its taps by axis.
template <typename F>
void ForCombinations(GradientBuilder& b, const Sampling& s, const F& f) {
  std::vector<size_t> at(s.axes.size(), 0);
  Attributes along;
  for (bool more = true; more;) {
    Value* index = nullptr;
    std::vector<const Tap*> taps;
    for (size_t k = 0; k < at.size(); ++k) {
      const Tap& tap = s.axes[k].taps[at[k]];
      taps.push_back(&tap);
      index = index ? b.Emit("Add", {b.Emit("Mul", {index, b.Int(s.axes[k].size)}), tap.index}) : tap.index;
    }
    f(b.Emit("Expand", {b.Reshape(index, {s.blocks, 1, s.points}), b.Ints({s.blocks, s.rows, s.points})}),
      taps);
    more = false;
    for (size_t k = at.size(); k-- > 0 && !more;) {
      more = ++at[k] < s.axes[k].taps.size();
      if (!more) at[k] = 0;
    }
  }
}

// The product of the taps' weights, along axis `k` the slope instead. [blocks, points]
Value* Product(GradientBuilder& b, const std::vector<const Tap*>& taps, int k = -1) {
  Value* product = nullptr;
  for (size_t i = 0; i < taps.size(); ++i) {
    Value* factor = static_cast<int>(i) == k ? taps[i]->slope : taps[i]->weight;
    product = product ? b.Emit("Mul", {product, factor}) : factor;
  }
  return product;
}

Value* Sum(GradientBuilder& b, Value* sum, Value* term) { return sum ? b.Emit("Add", {sum, term}) : term; }

Attributes LastAxis() {
  Attributes attributes;
  attributes.Set("axis", int64_t{2});
  return attributes;
}

}  // namespace

SampledAxis LinearTaps(GradientBuilder& b, Value* x, int64_t size) {
  SampledAxis axis{size, {}};
  const DType dtype = x->type.dtype;
  Attributes to;
  to.Set("to", static_cast<int64_t>(DType::kInt64));
  Value* floor = b.Emit("Floor", {x});
  Value* rest = b.Emit("Sub", {x, floor});
  Value *zero = b.Int(0), *last = b.Int(size - 1);
  for (int k = 0; k < 2; ++k) {
    Value* place = b.Emit("Cast", {k ? b.Emit("Add", {floor, b.Scalar(dtype, 1)}) : floor}, to);
    Value* index = b.Emit("Min", {b.Emit("Max", {place, zero}), last});
    Value* inside = AsFloat(b, b.Emit("Equal", {place, index}), dtype);
    Value* weight = k ? rest : b.Emit("Sub", {b.Scalar(dtype, 1), rest});
    axis.taps.push_back({index, b.Emit("Mul", {weight, inside}), k ? inside : b.Emit("Neg", {inside})});
  }
  return axis;
}

Value* Sampling::Read(GradientBuilder& b, Value* x) const {
  Value* y = nullptr;
  ForCombinations(b, *this, [&](Value* index, const std::vector<const Tap*>& taps) {
    Value* weight = b.Reshape(Product(b, taps), {blocks, 1, points});
    y = Sum(b, y, b.Emit("Mul", {b.Emit("GatherElements", {x, index}, LastAxis()), weight}));
  });
  return y;
}

Value* Sampling::Spread(GradientBuilder& b, Value* dy) const {
  if (!dy) return nullptr;
  int64_t places = 1;
  for (const SampledAxis& axis : axes) places *= axis.size;
  Value* dx = b.Zeros({dy->type.dtype, {blocks, rows, places}});
  Attributes added = LastAxis();
  added.Set("reduction", std::string("add"));
  ForCombinations(b, *this, [&](Value* index, const std::vector<const Tap*>& taps) {
    Value* weight = b.Reshape(Product(b, taps), {blocks, 1, points});
    dx = b.Emit("ScatterElements", {dx, index, b.Emit("Mul", {dy, weight})}, added);
  });
  return dx;
}

Value* Sampling::OfCoordinate(GradientBuilder& b, Value* x, Value* dy, int k) const {
  Value* sum = nullptr;
  Attributes dropped;
  dropped.Set("keepdims", int64_t{0});
  ForCombinations(b, *this, [&](Value* index, const std::vector<const Tap*>& taps) {
    if (!taps[k]->slope) return;
    Value* read = b.Emit("Mul", {dy, b.Emit("GatherElements", {x, index}, LastAxis())});
    Value* of_rows = b.Emit("ReduceSum", {read, b.Ints({1})}, dropped);
    sum = Sum(b, sum, b.Emit("Mul", {of_rows, Product(b, taps, k)}));
  });
  return sum;
}

}  // namespace pipec
