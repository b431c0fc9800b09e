// What instructions may ask of the moment they run in: the run-time scalars of a step. A plain struct, so
// that a device can keep a copy in its own memory.
#pragma once

#include <cstdint>

namespace pipec {

// Learning rate and weight decay of one parameter, schedule and per-parameter settings applied.
struct ParameterScalars {
  double lr = 0;
  double weight_decay = 0;
};

struct StepScalars {
  uint64_t seed = 0;
  int64_t step = 0;            // steps done before this one: 0 in the first
  int64_t updates = 0;         // of them, those that updated: fewer where float16 overflowed
  int64_t microbatch = 0;      // 0 .. M-1
  int64_t first_sample = 0;    // index, within the global batch, of this microbatch's first sample
  int64_t valid_samples = 0;   // samples of this microbatch that are not padding
  bool training = true;        // false in evaluation: dropout passes through, running statistics stay

  double momentum = 0.9;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double clip_norm = 0;        // 0: off
  double clip_value = 0;       // 0: off
  double loss_scale = 1;       // what gradients in float16 are multiplied by
  const ParameterScalars* parameters = nullptr;  // indexed by the optimizer ops' attribute "parameter"
};

}  // namespace pipec
