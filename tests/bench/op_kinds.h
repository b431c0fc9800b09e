// Where the time of a training step goes, by kinds that are the same for pipec and PyTorch: the ops of one have
// no counterparts among those of the other.
#pragma once

#include "tests/bench/figures.h"

namespace pipec::bench {

// Kinds of seconds by op. A softmax and a mask count as products, as PyTorch's attention holds them; compiled
// code holds ops of many kinds in its loops. What has no kind is `other`.
OpSeconds ByKind(const OpSeconds& ops);

}  // namespace pipec::bench
