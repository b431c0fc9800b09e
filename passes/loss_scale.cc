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
    // The helper losses count their labels; of other weights nothing is known but that they sum over samples.
    const Node* loss = training.loss_weight->producer()->input(1)->producer();
    const bool counts_labels = loss && loss->domain() == kPipecDomain && loss->input(1);
    weight *= static_cast<double>(counts_labels ? loss->input(1)->type.elements() : module.microbatch_size);
  }
  return std::exp2(std::ceil(std::log2(std::max(weight, 1.0))));
}

}  // namespace pipec
