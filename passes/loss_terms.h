// What a loss that the model computes is made of: the outputs that --loss names, and sums with their weights.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler/ir/module.h"

namespace pipec {

struct LossOutput {
  std::string name;
  double weight = 1;
};

// "NAME[*WEIGHT],...", what follows "output:" in --loss. InvalidArgument for an empty name, a name twice, a weight
// that is no number or 0.
absl::StatusOr<std::vector<LossOutput>> ParseLossOutputs(absl::string_view text);

// What `value` is another view of.
Value* Behind(Value* value);

// The class loss (ai.pipec::SoftmaxCrossEntropy, NegativeLogLikelihood) whose sum `sum` is; null if it is none.
const Node* ClassLossOf(const Value* sum);

// Whether the weight that a class loss is to be divided by depends on the labels: with class weights and where
// labels may be ignored. Else it is their number.
bool WeightDependsOnLabels(const Node& class_loss);

// Class losses with an ignore_index and no class weights, of which `loss`, where it is linear in scalars, takes the
// mean.
std::vector<Node*> MeansThatIgnoreLabels(Value* loss);

// `sum` (a scalar) times a number; a node is appended unless that is 1.
Value* Scaled(Graph& graph, Value* sum, double factor);

// A loss as a sum to be divided by a weight, so that both can be added up over microbatches before the division.
struct WeightedSum {
  Value* sum = nullptr;
  Value* weight = nullptr;
  const Node* class_loss = nullptr;  // if it is made of one alone
};

// `loss` (one element) as such a sum, if it is linear in means of class losses that all have the same weight: one
// mean, as import spells it Div(sum, weight), several times a factor, or several of the same labels. New nodes
// are appended where several sums make one. All null if it is anything else.
absl::StatusOr<WeightedSum> TakeApart(Graph& graph, Value* loss);

}  // namespace pipec
