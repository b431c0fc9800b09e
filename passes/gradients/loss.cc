// The loss helpers (compiler/ops/README.md has the formulas). Their output `weight` depends on the labels
// only.
#include "passes/gradients/rules.h"

namespace pipec {
namespace {

using Gradients = std::vector<Value*>;
using Span = absl::Span<Value* const>;
using Wanted = std::vector<bool>;

// A table of class weights does not learn (torch.nn.functional.cross_entropy refuses to), and nothing may
// learn through it.
void CheckClassWeights(GradientBuilder& b, const Wanted& wanted) {
  if (wanted.size() > 2 && wanted[2] && b.input(2)->producer()) {
    b.Fail(absl::UnimplementedError("the gradient of computed class weights"));
  }
}

Gradients SoftmaxCrossEntropy(GradientBuilder& b, Span dy, const Wanted& wanted) {
  if (dy.size() > 2 && dy[2]) b.Fail(absl::UnimplementedError("the gradient of the output log_sum_exp"));
  CheckClassWeights(b, wanted);
  Gradients gradients(wanted.size());
  if (!dy[0]) return gradients;
  std::vector<Value*> operands = {dy[0], b.input(0), b.input(1), b.RequireOutput(2)};
  if (b.input(2)) operands.push_back(b.input(2));
  gradients[0] =
      b.Emit("SoftmaxCrossEntropyGrad", std::move(operands), b.forward()->attributes, kPipecDomain);
  return gradients;
}

Gradients NegativeLogLikelihood(GradientBuilder& b, Span dy, const Wanted& wanted) {
  CheckClassWeights(b, wanted);
  Gradients gradients(wanted.size());
  if (!dy[0]) return gradients;
  const Shape& shape = b.input(0)->type.shape;
  Attributes attributes = b.forward()->attributes;
  attributes.Set("shape", std::vector<int64_t>(shape.begin(), shape.end()));
  std::vector<Value*> operands = {dy[0], b.input(1)};
  if (b.input(2)) operands.push_back(b.input(2));
  gradients[0] =
      b.Emit("NegativeLogLikelihoodGrad", std::move(operands), std::move(attributes), kPipecDomain);
  return gradients;
}

// Symmetric: the labels' gradient is the negative one.
Gradients MeanSquaredError(GradientBuilder& b, Span dy, const Wanted& wanted) {
  Gradients gradients(2);
  if (!dy[0]) return gradients;
  Value* gradient =
      b.Emit("MeanSquaredErrorGrad", {dy[0], b.input(0), b.input(1)}, b.forward()->attributes, kPipecDomain);
  if (wanted[0]) gradients[0] = gradient;
  if (wanted[1]) gradients[1] = b.Emit("Neg", {gradient});
  return gradients;
}

// d loss / d z = -x.
Gradients BinaryCrossEntropy(GradientBuilder& b, Span dy, const Wanted& wanted) {
  Gradients gradients(2);
  if (!dy[0]) return gradients;
  if (wanted[0]) {
    gradients[0] = b.Emit("BinaryCrossEntropyWithLogitsGrad", {dy[0], b.input(0), b.input(1)},
                          b.forward()->attributes, kPipecDomain);
  }
  if (wanted[1]) gradients[1] = b.Emit("Neg", {b.Emit("Mul", {b.input(0), dy[0]})});
  return gradients;
}

const GradientRuleEntry kRules[] = {
    {"SoftmaxCrossEntropy", kPipecDomain, SoftmaxCrossEntropy},
    {"NegativeLogLikelihood", kPipecDomain, NegativeLogLikelihood},
    {"MeanSquaredError", kPipecDomain, MeanSquaredError},
    {"BinaryCrossEntropyWithLogits", kPipecDomain, BinaryCrossEntropy},
};

}  // namespace

absl::Span<const GradientRuleEntry> LossRules() { return kRules; }

}  // namespace pipec
