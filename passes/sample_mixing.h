// Whether a loss may be cut into microbatches, and what it then is: only means and sums over samples may be
// cut, and what is linear in them.
#pragma once

#include "absl/status/statusor.h"
#include "compiler/ir/module.h"
#include "passes/pass.h"

namespace pipec {

enum class SampleMixing {
  kUnknown,  // no reduction over samples is known on the way to the loss
  kMean,     // the loss of a batch is the mean of that of its microbatches
  kSum,      // ... the sum
};

// How `loss` mixes the samples of a microbatch. InvalidArgument if a forward node mixes them in another way
// (a maximum over them, the square root of their mean, a sum of a mean and a sum): then the loss of a batch
// would depend on how it is cut. A sum over samples divided by the constant that counts them (they are all
// constants by now: a sum over shape[0]) is a mean. Where a batch axis is not known nothing is refused.
// BatchNormalization may mix: it is defined over the microbatch, as in GPipe.
absl::StatusOr<SampleMixing> FindSampleMixing(const Module& module, const Value* loss);

// Notes in the module, if the batch is cut into microbatches, which nodes mix samples: all in infer mode; in
// train mode those that FindSampleMixing lets pass and that are no means or sums (BatchNormalization,
// choices).
void NoteSampleMixing(Module& module, const CompileOptions& options);

}  // namespace pipec
