#include "passes/attention_pattern.h"

#include <algorithm>
#include <limits>

#include "compiler/ops/batch_axes.h"
#include "passes/constant_elements.h"

namespace pipec {
namespace {

// What hides a column from a row, at least: next to any other score of a row its weight is 0 (exp(-104) is, in
// float32). Models use -inf, the least float, -1e9, -1e4.
constexpr double kHidden = -1e4, kInfinity = std::numeric_limits<double>::infinity();

// x * c, c * x or x / c with a constant c: x, and the factor.
struct Scaled {
  Value* x;
  double factor;
};
std::optional<Scaled> Scaling(const Value* value) {
  const Node* node = value->producer();
  if (!node || (!node->Is("Mul") && !node->Is("Div"))) return std::nullopt;
  for (int k = 0; k < (node->Is("Div") ? 1 : 2); ++k) {
    const auto number = Number(node->input(1 - k));
    if (!number || node->input(k)->type != value->type) continue;
    return Scaled{node->input(k), node->Is("Div") ? 1 / *number : *number};
  }
  return std::nullopt;
}

// What a constant adds or puts in place of the columns behind i in row i, at most, if it leaves the others alone.
std::optional<double> HiddenBehind(const Value* mask, double fill, bool inverted, KnownMasks& known) {
  const Shape& shape = mask->type.shape;
  const size_t rank = shape.size();
  if (rank < 2 || shape[rank - 1] != shape[rank - 2] ||
      shape[rank - 1] * shape[rank - 2] != mask->type.elements()) {
    return std::nullopt;
  }
  const auto [place, is_new] = known.try_emplace({mask->data.bytes, fill, inverted});
  if (!is_new) return place->second;
  const bool bools = mask->type.dtype == DType::kBool;
  const int64_t n = shape[rank - 1];
  return place->second = WithElements(mask, [&](auto zero, const std::string& bytes) -> std::optional<double> {
    double most = -std::numeric_limits<double>::infinity();
    for (int64_t row = 0, i = 0; row < n; ++row) {
      for (int64_t column = 0; column < n; ++column, ++i) {
        const double entry = ElementAt<decltype(zero)>(bytes, i);
        const bool behind = column > row;
        if (bools ? (entry != 0) == (behind != inverted) : !behind && entry != 0) return std::nullopt;
        if (behind) most = std::max(most, bools ? fill : entry);
      }
    }
    return most;
  });
}

class Finder {
 public:
  Finder(Node* softmax, const std::vector<Value*>& outputs, KnownMasks& known)
      : softmax_(softmax), outputs_(outputs), known_(known) {}

  bool Find(AttentionPattern& found) { return Forwards(found) && Backwards(found); }

 private:
  bool HasUses(const Value* value, size_t uses) const {
    return value->uses().size() == uses &&
           std::find(outputs_.begin(), outputs_.end(), value) == outputs_.end();
  }
  Node* OnlyUser(const Value* value) const { return HasUses(value, 1) ? value->uses()[0].node : nullptr; }

  // From the softmax to the product with V.
  bool Forwards(AttentionPattern& found) const {
    Value* weights = softmax_->output(0);
    const int64_t rank = weights->type.shape.size();
    if (NormalizeAxis(softmax_->attributes.Int("axis", -1), rank) != rank - 1) return false;
    if (HasUses(weights, 2)) {
      // Where(IsNaN(weights), 0, weights)
      Node *is_nan = weights->uses()[0].node, *chosen = weights->uses()[1].node;
      if (!is_nan->Is("IsNaN")) std::swap(is_nan, chosen);
      if (!is_nan->Is("IsNaN") || !chosen->Is("Where") || OnlyUser(is_nan->output(0)) != chosen) return false;
      if (chosen->input(0) != is_nan->output(0) || chosen->input(2) != weights ||
          Number(chosen->input(1)) != 0)
        return false;
      found.zero_rows = true;
      found.gone = {chosen, is_nan};
      weights = chosen->output(0);
    }
    found.product = OnlyUser(weights);
    if (!found.product || !found.product->Is("MatMul") || found.product->input(0) != weights) return false;
    found.value = found.product->input(1);
    found.gone.push_back(softmax_);
    return true;
  }

  // From the softmax to Q and K.
  bool Backwards(AttentionPattern& found) {
    Value* scores = softmax_->input(0);
    while (scores) {
      Node* const node = scores->producer();
      if (!node || !OnlyUser(scores)) return false;
      found.gone.push_back(node);
      if (node->Is("MatMul")) {
        found.query = Unscaled(node->input(0), found);
        found.keys = Unscaled(node->input(1), found);
        return found.scale > 0 && node->input(0)->type.shape.size() == node->input(1)->type.shape.size();
      }
      if (const auto scaled = Scaling(scores)) {
        found.scale *= scaled->factor;
        scores = scaled->x;
      } else {
        scores = Unmasked(*node, found);
      }
    }
    return false;
  }

  // What a node masks; null if it does not, or is one mask too many.
  Value* Unmasked(const Node& node, AttentionPattern& found) {
    const TensorType& type = node.output(0)->type;
    if (node.Is("Add")) {
      for (int k = 0; k < 2; ++k) {
        Value *const scores = node.input(k), *const mask = node.input(1 - k);
        if (scores->type == type && AddMask(mask, 0, false, found)) return scores;
      }
    } else if (node.Is("Where")) {
      for (int k = 1; k < 3; ++k) {
        Value* const scores = node.input(k);
        const auto fill = Number(node.input(3 - k));
        if (fill && scores->type == type && AddMask(node.input(0), *fill, k == 2, found)) return scores;
      }
    }
    return nullptr;
  }

  bool AddMask(Value* mask, double fill, bool inverted, AttentionPattern& found) {
    const auto hidden = HiddenBehind(mask, fill, inverted, known_);
    // A factor behind the mask was the mask's too.
    if (hidden && *hidden * found.scale <= kHidden) {
      // A finite number might come back into sight beside another mask that hides the rest of the row.
      const bool stays_hidden =
          *hidden == -kInfinity && (!found.mask || Adds(found) || found.fill == -kInfinity);
      found.causal = true;
      alone_ = alone_ || !stays_hidden;
      return !(found.mask && alone_);
    }
    if (found.mask || alone_ || found.scale != 1) return false;
    found.mask = mask;
    found.fill = fill;
    found.inverted = inverted;
    return true;
  }
  static bool Adds(const AttentionPattern& found) { return found.mask->type.dtype != DType::kBool; }

  // An operand of the first product without the factor that it has; who else uses the scaled one keeps it.
  static Value* Unscaled(Value* operand, AttentionPattern& found) {
    const auto scaled = Scaling(operand);
    if (!scaled) return operand;
    found.scale *= scaled->factor;
    found.gone.push_back(operand->producer());
    return scaled->x;
  }

  Node* softmax_;
  const std::vector<Value*>& outputs_;
  KnownMasks& known_;
  bool alone_ = false;  // no other mask may stand beside the causal one
};

}  // namespace

std::optional<AttentionPattern> FindAttention(Node* softmax, const std::vector<Value*>& outputs,
                                              KnownMasks& known) {
  AttentionPattern found;
  if (!Finder(softmax, outputs, known).Find(found)) return std::nullopt;
  return found;
}

}  // namespace pipec
