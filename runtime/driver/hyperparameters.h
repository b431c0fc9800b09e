// Learning rate, weight decay and the rest of what an optimizer asks for.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/device/scalars.h"
#include "runtime/driver/lr_schedule.h"

namespace pipec {

// A value for all parameters, and others for those whose name a regular expression finds; the last that
// matches holds.
struct PerParameter {
  std::optional<double> value;
  std::vector<std::pair<std::string, double>> by_regex;
};
// Adds "VALUE" or "REGEX=VALUE". InvalidArgument for what is neither, or is negative.
absl::Status AddSetting(absl::string_view text, PerParameter* setting);

// What the user gave; the rest is the optimizer's default.
struct Hyperparameters {
  PerParameter lr, weight_decay;
  std::optional<double> momentum, beta1, beta2, eps;
  double clip_norm = 0;   // 0: off
  double clip_value = 0;  // 0: off
  LrSchedule schedule = LrSchedule::kConstant;
  int64_t warmup_steps = 0;
};

// InvalidArgument if a setting is given that the optimizer does not know.
absl::Status CheckUsed(const Hyperparameters& given, absl::string_view optimizer);

// PyTorch's defaults for the optimizer in all that is not set (momentum 0.9 for momentum and nesterov, which
// PyTorch has not as optimizers of their own).
Hyperparameters WithDefaults(const Hyperparameters& given, absl::string_view optimizer);

// "adamw: lr 0.001, weight decay 0.01, beta1 0.9, ...": only what the optimizer uses.
std::string Describe(const Hyperparameters& hyperparameters, absl::string_view optimizer);

// Base rate and decay of each named parameter. NotFound if a regular expression matches none, InvalidArgument
// if it is malformed.
absl::StatusOr<std::vector<ParameterScalars>> Resolve(const Hyperparameters& hyperparameters,
                                                      const std::vector<std::string>& names);

}  // namespace pipec
