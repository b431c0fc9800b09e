#include "compiler/onnx/in_place/counted_axes.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/ops/batch_axes.h"
#include "compiler/ops/op_info.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

// What a rule gets: the node, and what is counted of its operands (null: nothing).
struct Call {
  const NodeSpec& spec;
  std::vector<const Counted*> operands;

  const Shape& shape(int k) const { return spec.inputs[k]->type.shape; }
  int64_t rank(int k) const { return shape(k).size(); }
  const Shape& result() const { return spec.outputs[0].shape; }
  bool only(int k) const {
    for (int i = 0; i < operands.size(); ++i) {
      if (i != k && operands[i]) return false;
    }
    return operands[k] != nullptr;
  }
  int64_t attribute_axis(int64_t otherwise, int64_t rank) const {
    return NormalizeAxis(spec.attributes.Int("axis", otherwise), rank);
  }
};

// The counted axis of every result; -1: the rule cannot say, so that the node is refused.
using Rule = int (*)(const Call& call);

int Same(const Call& call) { return call.only(0) ? call.operands[0]->axis : -1; }

// Operands that are broadcast are counted alike, or have one entry along the axis.
int Elementwise(const Call& call) {
  const Counted* first = nullptr;
  int behind = 0;  // axes behind the counted one
  for (int k = 0; k < call.operands.size(); ++k) {
    if (!call.operands[k]) continue;
    first = call.operands[k];
    behind = static_cast<int>(call.rank(k)) - first->axis;
  }
  const int axis = static_cast<int>(call.result().size()) - behind;
  if (axis < 0) return -1;
  for (int k = 0; k < call.operands.size(); ++k) {
    if (!call.spec.inputs[k]) continue;
    const int64_t place = call.rank(k) - behind;
    const int64_t size = place < 0 ? 1 : call.shape(k)[place];
    const Counted* counted = call.operands[k];
    if (counted ? counted->count != first->count || counted->axis != place || size != call.result()[axis]
                : size != 1) {
      return -1;
    }
  }
  return axis;
}

int OfTranspose(const Call& call) {
  const std::vector<int64_t> perm = call.spec.attributes.Ints("perm");
  const int axis = call.operands[0]->axis;
  if (perm.empty()) return static_cast<int>(call.rank(0)) - 1 - axis;
  return static_cast<int>(std::find(perm.begin(), perm.end(), axis) - perm.begin());
}

// Squeeze, Unsqueeze, Reshape and Flatten: the axis with the same entries before it.
int Regrouped(const Call& call) {
  if (!call.only(0)) return -1;
  const int axis = call.operands[0]->axis;
  const Shape &from = call.shape(0), &to = call.result();
  const int64_t before = NumElements(absl::MakeSpan(from).first(axis));
  if (call.spec.op == "Squeeze") {
    const auto axes = call.spec.inputs.size() > 1 ? ConstantInts(call.spec.inputs[1]) : std::nullopt;
    if (!axes) return -1;
    int gone = 0;
    for (int64_t a : *axes) {
      a = NormalizeAxis(a, from.size());
      if (a == axis) return -1;
      gone += a < axis;
    }
    return axis - gone;
  }
  if (call.spec.op == "Unsqueeze") {
    const auto axes = ConstantInts(call.spec.inputs[1]);
    if (!axes) return -1;
    int left = axis;
    for (int64_t place = 0; place < static_cast<int64_t>(to.size()); ++place) {
      const bool made = std::any_of(axes->begin(), axes->end(),
                                    [&](int64_t a) { return NormalizeAxis(a, to.size()) == place; });
      if (!made && left-- == 0) return static_cast<int>(place);
    }
    return -1;
  }
  if (call.spec.op == "Flatten") {
    const int64_t split = call.attribute_axis(1, from.size());
    const bool first = axis < split && NumElements(from) == 0 ? false : axis < split;
    if (to[first ? 0 : 1] != from[axis]) return -1;
    return first ? 0 : 1;
  }
  // Reshape: a size that the shape leaves to be found (-1, or 0 for that of the operand) is the run's too.
  const auto shape = ConstantInts(call.spec.inputs[1]);
  if (!shape || from[axis] == 0) return -1;
  int64_t entries = 1;
  for (int place = 0; place < static_cast<int>(to.size()); ++place) {
    const int64_t asked = (*shape)[place];
    const bool copied = asked == 0 && place == axis && call.spec.attributes.Int("allowzero", 0) == 0;
    if (entries == before && to[place] == from[axis] && (asked == -1 || copied)) return place;
    entries *= to[place];
  }
  return -1;
}

int OfSlice(const Call& call) {
  if (!call.only(0)) return -1;
  const auto starts = ConstantInts(call.spec.inputs[1]);
  const Value* given = call.spec.inputs.size() > 3 ? call.spec.inputs[3] : nullptr;
  const auto axes = given ? ConstantInts(given) : std::nullopt;
  if (!starts || (given && !axes)) return -1;
  for (int64_t i = 0; i < static_cast<int64_t>(starts->size()); ++i) {
    if ((axes ? NormalizeAxis((*axes)[i], call.rank(0)) : i) == call.operands[0]->axis) return -1;
  }
  return call.operands[0]->axis;
}

int OfConcat(const Call& call) {
  const Counted* first = call.operands[0];
  for (const Counted* counted : call.operands) {
    if (!first || !counted || counted->count != first->count || counted->axis != first->axis) return -1;
  }
  return call.attribute_axis(0, call.rank(0)) == first->axis ? -1 : first->axis;
}

// Softmax, LayerNormalization and Split work along other axes.
int Along(const Call& call) {
  const bool backwards = call.spec.op != "Split";
  const int64_t axis = call.attribute_axis(backwards ? -1 : 0, call.rank(0));
  if (!call.only(0)) return -1;
  const bool to_the_end = call.spec.op == "LayerNormalization" || call.spec.op == "RMSNormalization";
  const int counted = call.operands[0]->axis;
  return to_the_end ? (counted < axis ? counted : -1) : (counted != axis ? counted : -1);
}

int OfGather(const Call& call) {
  const int64_t axis = call.attribute_axis(0, call.rank(0));
  if (call.only(1)) return static_cast<int>(axis) + call.operands[1]->axis;
  if (!call.only(0) || call.operands[0]->axis == axis) return -1;
  const int counted = call.operands[0]->axis;
  return counted < axis ? counted : counted - 1 + static_cast<int>(call.rank(1));
}

int OfGatherNd(const Call& call) {
  if (!call.only(1) || call.spec.attributes.Int("batch_dims", 0) != 0) return -1;
  return call.operands[1]->axis < call.rank(1) - 1 ? call.operands[1]->axis : -1;
}

// Rows of the first operand against all of the second.
int OfMatMul(const Call& call) {
  if (!call.only(0) || call.rank(1) < 2 || call.operands[0]->axis == call.rank(0) - 1) return -1;
  const int64_t behind = call.rank(0) - call.operands[0]->axis, place = call.rank(1) - behind;
  if (behind > 2 && place >= 0 && call.shape(1)[place] != 1) return -1;
  return static_cast<int>(call.result().size() - behind);
}

int OfGemm(const Call& call) {
  if (call.spec.attributes.Int("transA", 0) != 0 || call.operands[1] || !call.operands[0] ||
      call.operands[0]->axis != 0) {
    return -1;
  }
  if (call.operands.size() < 3 || !call.spec.inputs[2]) return 0;
  const bool one_row = call.rank(2) < 2 || call.shape(2)[0] == 1;
  return !call.operands[2] && one_row ? 0 : -1;
}

struct RuleRow {
  absl::string_view op;
  Rule rule;
  bool moves;  // the entries of one operand, as they are: zeros stay zeros
};

constexpr RuleRow kRules[] = {
    {"Cast", Same, true},
    {"Identity", Same, true},
    {"Transpose", OfTranspose, true},
    {"Reshape", Regrouped, true},
    {"Flatten", Regrouped, true},
    {"Squeeze", Regrouped, true},
    {"Unsqueeze", Regrouped, true},
    {"Slice", OfSlice, true},
    {"Split", Along, true},
    {"Concat", OfConcat, true},
    {"Softmax", Along, false},
    {"LogSoftmax", Along, false},
    {"LayerNormalization", Along, false},
    {"RMSNormalization", Along, false},
    {"Gather", OfGather, false},
    {"GatherND", OfGatherNd, false},
    {"MatMul", OfMatMul, false},
    {"Gemm", OfGemm, false},
};

int OfNonZero(const NodeSpec&, int) { return 1; }
int OfFirst(const NodeSpec&, int) { return 0; }
// Without an axis the operand is flattened.
int OfAxis(const NodeSpec& spec, int) {
  if (!spec.attributes.Has("axis")) return 0;
  return static_cast<int>(NormalizeAxis(spec.attributes.Int("axis"), spec.inputs[0]->type.shape.size()));
}
// (Y, indices, inverse_indices, counts).
int OfUnique(const NodeSpec& spec, int k) { return k == 0 ? OfAxis(spec, k) : k == 2 ? -1 : 0; }

constexpr SizedByData kSizedByData[] = {
    {"NonZero", 1, OfNonZero},
    {"Compress", 1, OfAxis},
    {"Unique", 4, OfUnique},
    {"NonMaxSuppression", 1, OfFirst},
};

}  // namespace

const Counted* CountedAxes::Find(const Value* value) const {
  auto it = counted_.find(value);
  return it == counted_.end() ? nullptr : &it->second;
}

const Counted* CountedAxes::First(absl::Span<Value* const> operands) const {
  if (counted_.empty()) return nullptr;
  for (const Value* operand : operands) {
    if (const Counted* counted = operand ? Find(operand) : nullptr) return counted;
  }
  return nullptr;
}

absl::StatusOr<std::vector<std::optional<Counted>>> CountedAxes::OfResults(const NodeSpec& spec) const {
  Call call{spec, {}};
  for (const Value* operand : spec.inputs) call.operands.push_back(operand ? Find(operand) : nullptr);
  const Counted* first = First(spec.inputs);
  int axis = -1;
  bool zeros = false;
  if (spec.domain.empty()) {
    const auto* row = std::find_if(std::begin(kRules), std::end(kRules),
                                   [&](const RuleRow& candidate) { return candidate.op == spec.op; });
    if (row != std::end(kRules)) {
      axis = row->rule(call);
      zeros = row->moves;
      for (const Counted* counted : call.operands) zeros &= !counted || counted->zeros;
      // Of what is gathered from a counted value the rest stays as it was.
      if (spec.op == "Gather" && call.operands[0]) zeros = first->zeros;
    } else if (IsBroadcast(spec.op, spec.domain)) {
      axis = Elementwise(call);
    }
  }
  if (axis < 0) return Refusal(spec);
  return std::vector<std::optional<Counted>>(spec.outputs.size(), Counted{axis, first->count, zeros});
}

absl::Status CountedAxes::Refusal(const NodeSpec& spec) const {
  const Value* operand = *std::find_if(spec.inputs.begin(), spec.inputs.end(),
                                       [&](const Value* value) { return value && Find(value); });
  const int axis = Find(operand)->axis;
  return absl::UnimplementedError(absl::StrCat("how many entries '", operand->name(), "' has along axis ",
                                               axis, ", at most ", operand->type.shape[axis],
                                               ", is known to the run only, which ", spec.op,
                                               " does not support in this place"));
}

bool CountedAxes::IsIndex(const NodeSpec& spec, int k) {
  return spec.domain.empty() && k == 1 && (spec.op == "Gather" || spec.op == "GatherND");
}

const SizedByData* FindSizedByData(const NodeSpec& spec) {
  if (!spec.domain.empty()) return nullptr;
  for (const SizedByData& row : kSizedByData) {
    if (row.op == spec.op) return &row;
  }
  return nullptr;
}

}  // namespace pipec
