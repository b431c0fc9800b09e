// The ordered table of passes, with the reason for each position.
#include "passes/passes.h"

namespace pipec {
namespace {

constexpr Level kModel = Level::kModel, kTraining = Level::kTraining, kStaged = Level::kStaged,
                kScheduled = Level::kScheduled, kPlanned = Level::kPlanned;

constexpr PassInfo kPasses[] = {
    {"widen-small-floats", WidenSmallFloats, kModel, kModel, false,
     "first: casts that it makes idle go with the identities, and what folds is then computed in float32"},
    {"expand-gradient", ExpandGradient, kModel, kModel, false,
     "before all changes of the graph: its nodes are then the model's own, and values are what the model calls them"},
    {"eliminate-identity", EliminateIdentity, kModel, kModel, false,
     "before all others: so that no later pattern has to look through an Identity"},
    {"fold-constants", FoldConstants, kModel, kModel, false,
     "before anything that needs axes, shapes or masks as constants"},
    {"lower-dropout", LowerDropout, kModel, kModel, false,
     "after folding, which makes ratio and training_mode constants; before the batch axis, which its rows know"},
    {"freeze-batch-normalization", FreezeBatchNormalization, kModel, kModel, false,
     "before the batch axis and whatever asks which nodes mix samples"},
    {"eliminate-dead", EliminateDead, kModel, kModel, false,
     "after folding left shape arithmetic without users; before fusion, which asks for single users"},
    {"fuse-attention", FuseAttention, kModel, kModel, false,
     "without dead users of its weights; before transposes disappear in products, where it would not see them"},
    {"fuse-gelu", FuseGelu, kModel, kModel, false,
     "after folding, which makes its factors constants; before the products that Gelu becomes part of"},
    {"fuse-transpose-matmul", FuseTransposeMatmul, kModel, kModel, false,
     "before the cut, as every change of arithmetic, and before gradients, which then need no transposes either"},
    {"fuse-matmul-bias", FuseMatmulBias, kModel, kModel, false,
     "before the cut, as every change of arithmetic; after fuse-transpose-matmul, whose products have biases too"},
    {"fuse-matmul-gelu", FuseMatmulGelu, kModel, kModel, false,
     "before the cut, as every change of arithmetic; after fuse-matmul-bias, whose products have biases too"},
    {"split-parameter-ops", SplitParameterOps, kModel, kModel, false,
     "after fusion took most of them away; before gradients, which count the uses of a parameter"},
    {"add-lora", AddLora, kModel, kModel, true,
     "after fusion and splitting, whose products of weights it adapts; before the batch axis, which its "
     "values need too"},
    {"copy-outputs", CopyOutputs, kModel, kModel, false,
     "after folding and splitting, which decide what is a constant; before the batch axis, which copies have too"},
    {"infer-batch-axis", InferBatchAxis, kModel, kModel, false,
     "on the final forward graph; the loss and dropout need it"},
    {"key-random", KeyRandom, kModel, kModel, false, "after the batch axis, which it writes down for the draws"},
    {"build-loss", BuildLoss, kModel, kModel, true, "the last forward nodes; gradients start from it"},
    {"lower-batch-normalization", LowerBatchNormalization, kModel, kModel, true,
     "after the loss, whose check of mixed samples knows ONNX's op; before gradients, which need its statistics"},
    {"insert-casts", InsertCasts, kModel, kModel, false,
     "on the final forward graph, losses and normalisations included; before gradients, which take its types"},
    {"build-gradients", BuildGradients, kModel, kModel, true, "needs the loss; the update needs its accumulators"},
    {"recompute-casts", RecomputeCasts, kModel, kModel, true,
     "on the backward nodes; before split-backward, which makes the casts I or W as their consumers"},
    {"widen-sums", WidenSums, kModel, kModel, true,
     "on what flows into accumulators; before split-backward, which makes its casts I or W"},
    {"fuse-matmul-gelu-grad", FuseMatmulGeluGrad, kModel, kModel, true,
     "before the cut, as every change of arithmetic; after widen-sums, which asks for products to be float32"},
    {"fuse-casts", FuseCasts, kModel, kModel, false,
     "after widen-sums, the last pass that makes casts; before split-backward, to which a node with its casts is one"},
    {"build-update", BuildUpdate, kModel, kTraining, true, "completes level training"},
    {"split-backward", SplitBackward, kTraining, kTraining, true,
     "after all backward nodes exist; before the partitioner, which weighs I and W apart"},
    {"fuse-accumulate", FuseAccumulate, kTraining, kTraining, true,
     "after split-backward, which tells what flows into sums only; before the cut, as every change of arithmetic"},
    {"partition-stages", PartitionStages, kModel, kModel, false,
     "after every change of arithmetic, so that numbers do not depend on the cut"},
    {"replicate-update", ReplicateUpdate, kTraining, kTraining, true,
     "after stages are known: who owns a parameter; before messages, which carry its accumulators and norms"},
    {"insert-messages", InsertMessages, kModel, kStaged, false, "completes level staged"},
    {"recompute-forward", RecomputeForward, kStaged, kStaged, true,
     "after messages, which say what a stage keeps anyway; the last change of what is computed"},
    {"order-nodes", OrderNodes, kStaged, kStaged, false,
     "after recompute-forward, whose copies are ordered too; before the actions and the memory that this order is for"},
    {"order-actions", OrderActions, kStaged, kScheduled, false,
     "needs the messages and the modelled times of the stages"},
    {"split-validation", SplitValidation, kScheduled, kScheduled, true,
     "needs the order of the actions and their messages; before memory is planned, which updates ahead need more of"},
    {"plan-memory", PlanMemory, kScheduled, kPlanned, false, "needs the order of the actions: how long a buffer lives"},
};

}  // namespace

absl::Span<const PassInfo> AllPasses() { return kPasses; }

const PassInfo* FindPass(absl::string_view name) {
  for (const PassInfo& pass : kPasses) {
    if (pass.name == name) return &pass;
  }
  return nullptr;
}

}  // namespace pipec
