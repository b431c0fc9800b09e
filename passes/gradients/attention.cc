// Attention that keeps no weights: one node computes them again and makes all three gradients. The mask has none: what
// is fused has a mask that nothing learns from (fuse_attention.cc).
#include "passes/gradients/rules.h"

namespace pipec {
namespace {

std::vector<Value*> FusedAttention(GradientBuilder& b, absl::Span<Value* const> dy,
                                   const std::vector<bool>& wanted) {
  if ((wanted.size() > 3 && wanted[3]) || (dy.size() > 1 && dy[1])) {
    b.Fail(absl::UnimplementedError("no gradient of the mask, nor of log_sum_exp"));
    return {};
  }
  std::vector<Value*> operands = {dy[0], b.input(0), b.input(1), b.input(2), b.output(0), b.RequireOutput(1)};
  if (b.input(3)) operands.push_back(b.input(3));
  std::vector<Value*> gradients =
      b.EmitAll("FusedAttentionGrad", std::move(operands), b.forward()->attributes, kPipecDomain, 3);
  gradients.resize(wanted.size());
  for (size_t k = 0; k < wanted.size(); ++k) {
    if (!wanted[k]) gradients[k] = nullptr;
  }
  return gradients;
}

const GradientRuleEntry kRules[] = {{"FusedAttention", kPipecDomain, FusedAttention}};

}  // namespace

absl::Span<const GradientRuleEntry> AttentionRules() { return kRules; }

}  // namespace pipec
