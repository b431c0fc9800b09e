// The learning rate of each step, as a factor of the base rate.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipec {

enum class LrSchedule { kConstant, kLinear, kCosine, kStep, kOneCycle };

// constant, linear, cosine, step, one-cycle.
absl::StatusOr<LrSchedule> ParseLrSchedule(absl::string_view name);

// Factor of step `step` (0 for the first) of `steps`. In the first `warmup` steps the rate rises linearly:
// (step + 1) / warmup. What follows runs over the T = steps - warmup remaining ones, t = step - warmup:
//   constant   1
//   linear     1 - t / T
//   cosine     (1 + cos(pi t / T)) / 2              (PyTorch's CosineAnnealingLR with T_max = T)
//   step       0.1 in the second third, 0.01 in the last
//   one-cycle  PyTorch's OneCycleLR: cosine from 1/25 up to 1 over the warm-up (without one: 0.3 of the
//   steps), then down to 1/250000
double LrFactor(LrSchedule schedule, int64_t step, int64_t steps, int64_t warmup);

// What the rate of weights that lack `delay` updates is multiplied by at step `step`, as Yang et al. do (PipeMare,
// 1910.05124, T1): tau^-p, where tau = delay + 1 is how many updates lie from the weights that a gradient is of to
// those that it makes, and p = 1 - min(step / K, 1). K, as they advise, is five times the warm-up; without one a
// quarter of the steps.
double DelayFactor(int delay, int64_t step, int64_t steps, int64_t warmup);

}  // namespace pipec
