#include "passes/loss_scale.h"

#include <algorithm>
#include <cmath>

namespace pipec {

double LossScaleDivisor(const Module& module, const CompileOptions& options) {
  if (options.precision != DType::kFloat16) return 0;
  const Training& training = module.training;
  if (training.loss_is_sum) return 1;
  double weight = static_cast<double>(options.microbatches) * options.replicas;
  if (training.loss_weight) {
    const Node* loss = training.loss_weight->producer()->input(1)->producer();
    const Value* labels = loss ? loss->input(1) : nullptr;
    weight *= static_cast<double>(labels ? labels->type.elements() : module.microbatch_size);
  }
  return std::exp2(std::ceil(std::log2(std::max(weight, 1.0))));
}

}  // namespace pipec
