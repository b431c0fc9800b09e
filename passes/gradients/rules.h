// The families of gradient rules, one file each; rules.cc lists them.
#pragma once

#include "passes/gradients/gradient.h"

namespace pipec {

absl::Span<const GradientRuleEntry> ActivationRules();
absl::Span<const GradientRuleEntry> ArithmeticRules();
absl::Span<const GradientRuleEntry> AttentionRules();
absl::Span<const GradientRuleEntry> BlockRules();
absl::Span<const GradientRuleEntry> DeformConvRules();
absl::Span<const GradientRuleEntry> DeterminantRules();
absl::Span<const GradientRuleEntry> EinsumRules();
absl::Span<const GradientRuleEntry> FourierRules();
absl::Span<const GradientRuleEntry> GridSampleRules();
absl::Span<const GradientRuleEntry> IndexingRules();
absl::Span<const GradientRuleEntry> LossRules();
absl::Span<const GradientRuleEntry> MathRules();
absl::Span<const GradientRuleEntry> MatMulRules();
absl::Span<const GradientRuleEntry> NormRules();
absl::Span<const GradientRuleEntry> NormalizationRules();
absl::Span<const GradientRuleEntry> QuantizationRules();
absl::Span<const GradientRuleEntry> RecurrentRules();
absl::Span<const GradientRuleEntry> ReductionRules();
absl::Span<const GradientRuleEntry> RegionRules();
absl::Span<const GradientRuleEntry> ResizeRules();
absl::Span<const GradientRuleEntry> ScatterRules();
absl::Span<const GradientRuleEntry> SelectionRules();
absl::Span<const GradientRuleEntry> SequenceRules();
absl::Span<const GradientRuleEntry> ShapeRules();
absl::Span<const GradientRuleEntry> WindowRules();

}  // namespace pipec
