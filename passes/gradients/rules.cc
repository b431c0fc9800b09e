// Every gradient rule there is, and the ops through which no gradient flows.
#include "passes/gradients/rules.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

namespace pipec {
namespace {

using Key = std::pair<absl::string_view, absl::string_view>;

const std::vector<GradientRuleEntry>& Rules() {
  static const auto* const rules = [] {
    auto* all = new std::vector<GradientRuleEntry>;
    for (auto family :
         {ActivationRules, ArithmeticRules, AttentionRules, BlockRules,      DeformConvRules,    DeterminantRules,
          EinsumRules,     FourierRules,    GridSampleRules, IndexingRules,      LossRules,
          MathRules,       MatMulRules,     NormRules,       NormalizationRules, QuantizationRules,
          RecurrentRules,  ReductionRules,  RegionRules,     ResizeRules,        ScatterRules,
          SelectionRules,  SequenceRules,   ShapeRules,      WindowRules}) {
      for (const GradientRuleEntry& entry : family()) all->push_back(entry);
    }
    return all;
  }();
  return *rules;
}

}  // namespace

absl::Span<const GradientRuleEntry> AllGradientRules() { return Rules(); }

GradientRule FindGradientRule(absl::string_view op, absl::string_view domain) {
  static const auto* const by_op = [] {
    auto* map = new absl::flat_hash_map<Key, GradientRule>;
    for (const GradientRuleEntry& entry : Rules()) map->emplace(Key(entry.op, entry.domain), entry.rule);
    return map;
  }();
  auto it = by_op->find(Key(op, domain));
  return it == by_op->end() ? nullptr : it->second;
}

bool NoGradientFlows(absl::string_view op, absl::string_view domain) {
  static const auto* const ops = new absl::flat_hash_set<Key>{
      {"Equal", ""},
      {"Less", ""},
      {"LessOrEqual", ""},
      {"Greater", ""},
      {"GreaterOrEqual", ""},
      {"Not", ""},
      {"And", ""},
      {"Or", ""},
      {"Xor", ""},
      {"IsNaN", ""},
      {"IsInf", ""},
      {"ArgMax", ""},
      {"ArgMin", ""},
      {"NonZero", ""},
      {"Shape", ""},
      {"Size", ""},
      {"Range", ""},
      {"Constant", ""},
      {"EyeLike", ""},
      {"ConstantOfShape", ""},
      {"Floor", ""},
      {"Ceil", ""},
      {"Round", ""},
      {"Sign", ""},
      {"Hardmax", ""},
      {"Multinomial", ""},
      {"QuantizeLinear", ""},
      {"RandomNormalLike", ""},
      {"RandomUniformLike", ""},
      {"CountCorrect", kPipecDomain},
      {"RunningAverage", kPipecDomain},
  };
  return ops->contains(Key(op, domain));
}

}  // namespace pipec
