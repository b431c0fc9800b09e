#include "runtime/driver/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "absl/strings/str_cat.h"

namespace pipec {
namespace {

// From `start` at 0 to `end` at 1, along half a cosine.
double Anneal(double start, double end, double position) {
  return end + (start - end) / 2 * (1 + std::cos(std::numbers::pi * position));
}

double OneCycle(int64_t step, int64_t steps, int64_t warmup) {
  constexpr double kShare = 0.3, kInitial = 1.0 / 25, kFinal = kInitial / 1e4;
  const double top = (warmup > 0 ? static_cast<double>(warmup) : kShare * static_cast<double>(steps)) - 1;
  const double end = static_cast<double>(steps) - 1;
  if (step <= top && top > 0) return Anneal(kInitial, 1, step / top);
  if (end <= top) return 1;
  return Anneal(1, kFinal, std::min(1.0, (step - top) / (end - top)));
}

}  // namespace

absl::StatusOr<LrSchedule> ParseLrSchedule(absl::string_view name) {
  if (name == "constant") return LrSchedule::kConstant;
  if (name == "linear") return LrSchedule::kLinear;
  if (name == "cosine") return LrSchedule::kCosine;
  if (name == "step") return LrSchedule::kStep;
  if (name == "one-cycle") return LrSchedule::kOneCycle;
  return absl::InvalidArgumentError(absl::StrCat("no learning rate schedule '", name,
                                                 "'; there are constant, linear, cosine, step, one-cycle"));
}

double LrFactor(LrSchedule schedule, int64_t step, int64_t steps, int64_t warmup) {
  if (schedule == LrSchedule::kOneCycle) return OneCycle(step, steps, warmup);
  if (step < warmup) return static_cast<double>(step + 1) / static_cast<double>(warmup);
  const double done =
      static_cast<double>(step - warmup) / static_cast<double>(std::max<int64_t>(steps - warmup, 1));
  switch (schedule) {
    case LrSchedule::kLinear:
      return 1 - done;
    case LrSchedule::kCosine:
      return (1 + std::cos(std::numbers::pi * done)) / 2;
    case LrSchedule::kStep:
      return done < 1.0 / 3 ? 1 : done < 2.0 / 3 ? 0.1 : 0.01;
    default:
      return 1;
  }
}

double DelayFactor(int delay, int64_t step, int64_t steps, int64_t warmup) {
  const double until = warmup > 0 ? 5.0 * static_cast<double>(warmup) : static_cast<double>(steps) / 4;
  const double rest = 1 - std::min(static_cast<double>(step) / until, 1.0);
  return delay == 0 ? 1 : std::pow(delay + 1, -rest);
}

}  // namespace pipec
