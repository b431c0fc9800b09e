// The scalars of an evaluation or inference step.
#pragma once

#include <vector>

#include "runtime/device/scalars.h"
#include "runtime/plan/manifest.h"

namespace pipec {

// `valid` samples of the batch are not padding; `step` training steps were done before.
void SetEvalScalars(const Manifest& manifest, uint64_t seed, int64_t step, int64_t valid,
                    std::vector<StepScalars>* scalars);

}  // namespace pipec
