// Finds, for every value, the axis that counts the samples of the microbatch, from the inputs' first axes
// through the rules of the op table. -1 where samples are mixed, absent, or no rule is known. The helper
// Dropout is told its axis, so that its draw depends on the sample and not on the microbatch. Level model; on
// the final forward graph; the loss and dropout need it.
#include "compiler/ops/op_info.h"
#include "passes/passes.h"

namespace pipec {

absl::StatusOr<bool> InferBatchAxis(Module& module, const PassContext&) {
  bool changed = false;
  for (Node* node = module.graph.first_node(); node; node = node->next()) {
    for (int k = 0; k < node->outputs().size(); ++k) {
      Value* output = node->outputs()[k];
      if (!output) continue;
      int axis = BatchAxisOf(*node, k);
      if (axis >= 0 &&
          (axis >= output->type.shape.size() || output->type.shape[axis] != module.microbatch_size))
        axis = -1;
      changed |= axis != output->batch_axis;
      output->batch_axis = axis;
    }
    if (node->Is("Dropout", kPipecDomain) &&
        node->attributes.Int("batch_axis", -1) != node->input(0)->batch_axis) {
      node->attributes.Set("batch_axis", static_cast<int64_t>(node->input(0)->batch_axis));
      changed = true;
    }
  }
  return changed;
}

}  // namespace pipec
