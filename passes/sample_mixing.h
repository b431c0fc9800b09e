// Whether a loss may be cut into microbatches: only means and sums over samples may, and what is linear in
// them.
#pragma once

#include "absl/status/status.h"
#include "compiler/ir/graph.h"

namespace pipec {

// InvalidArgument if a forward node mixes the samples of a microbatch in another way (a maximum over them,
// the square root of their mean): then the loss of a batch would depend on how it is cut. Where a batch axis
// is not known nothing is refused. BatchNormalization may mix: it is defined over the microbatch, as in
// GPipe.
absl::Status CheckSampleMixing(const Graph& graph);

}  // namespace pipec
