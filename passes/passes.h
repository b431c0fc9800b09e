// Every pass, one line each; the file of a pass says what it does.
#pragma once

#include "passes/pass.h"

namespace pipec {

// Level model.
absl::StatusOr<bool> WidenSmallFloats(Module& module, const PassContext& context);
absl::StatusOr<bool> ExpandGradient(Module& module, const PassContext& context);
absl::StatusOr<bool> EliminateIdentity(Module& module, const PassContext& context);
absl::StatusOr<bool> FoldConstants(Module& module, const PassContext& context);
absl::StatusOr<bool> EliminateDead(Module& module, const PassContext& context);
absl::StatusOr<bool> FuseAttention(Module& module, const PassContext& context);
absl::StatusOr<bool> FuseTransposeMatmul(Module& module, const PassContext& context);
absl::StatusOr<bool> FuseGelu(Module& module, const PassContext& context);
absl::StatusOr<bool> FuseMatmulBias(Module& module, const PassContext& context);
absl::StatusOr<bool> FuseMatmulGelu(Module& module, const PassContext& context);
absl::StatusOr<bool> SplitParameterOps(Module& module, const PassContext& context);
absl::StatusOr<bool> AddLora(Module& module, const PassContext& context);
absl::StatusOr<bool> CopyOutputs(Module& module, const PassContext& context);
absl::StatusOr<bool> InferBatchAxis(Module& module, const PassContext& context);
absl::StatusOr<bool> KeyRandom(Module& module, const PassContext& context);
absl::StatusOr<bool> LowerBatchNormalization(Module& module, const PassContext& context);
absl::StatusOr<bool> FreezeBatchNormalization(Module& module, const PassContext& context);
absl::StatusOr<bool> LowerDropout(Module& module, const PassContext& context);
absl::StatusOr<bool> InsertCasts(Module& module, const PassContext& context);

// From model to training.
absl::StatusOr<bool> BuildLoss(Module& module, const PassContext& context);
absl::StatusOr<bool> BuildGradients(Module& module, const PassContext& context);
absl::StatusOr<bool> RecomputeCasts(Module& module, const PassContext& context);
absl::StatusOr<bool> WidenSums(Module& module, const PassContext& context);
absl::StatusOr<bool> FuseMatmulGeluGrad(Module& module, const PassContext& context);
absl::StatusOr<bool> SplitBackward(Module& module, const PassContext& context);
absl::StatusOr<bool> FuseAccumulate(Module& module, const PassContext& context);
absl::StatusOr<bool> FuseCasts(Module& module, const PassContext& context);
absl::StatusOr<bool> BuildUpdate(Module& module, const PassContext& context);

// To staged.
absl::StatusOr<bool> PartitionStages(Module& module, const PassContext& context);
absl::StatusOr<bool> ReplicateUpdate(Module& module, const PassContext& context);
absl::StatusOr<bool> InsertMessages(Module& module, const PassContext& context);
absl::StatusOr<bool> RecomputeForward(Module& module, const PassContext& context);
absl::StatusOr<bool> OrderNodes(Module& module, const PassContext& context);

// To scheduled, to planned.
absl::StatusOr<bool> OrderActions(Module& module, const PassContext& context);
absl::StatusOr<bool> SplitValidation(Module& module, const PassContext& context);
absl::StatusOr<bool> PlanMemory(Module& module, const PassContext& context);

}  // namespace pipec
