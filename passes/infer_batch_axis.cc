// Finds, for every value, the axis along which the samples of the microbatch lie, from the inputs' first axes
// through the rules of the op table. -1 where samples are mixed, absent, or no rule is known. The helper ops
// that treat samples one by one, Dropout and the losses, are told axis and number of samples, so that what
// they do depends on the sample and not on the microbatch. Level model; on the final forward graph; the loss
// and dropout need it.
#include "absl/strings/str_cat.h"
#include "compiler/ops/op_info.h"
#include "passes/passes.h"
#include "passes/sample_mixing.h"

namespace pipec {
namespace {

// The batch axis of the labels of a class loss: their own, or that of the scores without the axis of classes.
int LabelsBatchAxis(const Node& loss) {
  const Value &scores = *loss.input(0), &labels = *loss.input(1);
  if (labels.batch_axis >= 0 || scores.batch_axis < 0) return labels.batch_axis;
  const int64_t rank = scores.type.shape.size(), axis = loss.attributes.Int("axis", 1);
  const int64_t classes = axis < 0 ? axis + rank : axis;
  if (scores.batch_axis == classes) return -1;
  return scores.batch_axis > classes ? scores.batch_axis - 1 : scores.batch_axis;
}

bool TellSamples(Node& node, int axis, int64_t samples) {
  Attributes& attributes = node.attributes;
  if (attributes.Int("batch_axis", -2) == axis && attributes.Int("samples") == samples) return false;
  attributes.Set("batch_axis", int64_t{axis});
  attributes.Set("samples", samples);
  return true;
}

}  // namespace

absl::StatusOr<bool> InferBatchAxis(Module& module, const PassContext& context) {
  bool changed = false;
  const int64_t samples = module.microbatch_size;
  for (Node* node = module.graph.first_node(); node; node = node->next()) {
    changed |= SetBatchAxes(*node);
    if (node->Is("Dropout", kPipecDomain)) {
      const int axis = node->input(0)->batch_axis;
      if (TellSamples(*node, axis, samples)) {
        changed = true;
        if (axis < 0) {
          module.notes.push_back(absl::StrCat("dropout '", node->name(), "': where its samples lie is not ",
                                              "known, so every microbatch of a step has the same mask"));
        }
      }
    } else if (node->Is("SoftmaxCrossEntropy", kPipecDomain) ||
               node->Is("NegativeLogLikelihood", kPipecDomain)) {
      changed |= TellSamples(*node, LabelsBatchAxis(*node), samples);
    }
  }
  // In train mode the loss decides what counts.
  if (module.mode == Mode::kInfer) NoteSampleMixing(module, context.options);
  return changed;
}

}  // namespace pipec
