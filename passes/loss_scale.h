// Loss scaling of gradients in float16 (--precision=fp16), as torch.amp.GradScaler: they are computed multiplied
// by a number that the runtime chooses, so that small ones do not vanish.
#pragma once

#include "passes/pass.h"

namespace pipec {

// PyTorch scales the mean loss of the batch; here gradients are those of sums, so the scale is divided by what
// the sums will be divided by, as far as that is known now (ignored labels are not), rounded up to a power of
// two, so that scaling rounds nothing. 0: nothing is scaled. Needs the loss (build-loss).
double LossScaleDivisor(const Module& module, const CompileOptions& options);

}  // namespace pipec
