// The gradients of a model's parameters against central differences.
#pragma once

#include "absl/status/status.h"
#include "compiler/ir/module.h"

namespace pipec {

struct CheckGradientOptions {
  double step = 1e-5;
  double relative = 1e-6;
  double factor = 1;  // on the gradients: another than 1 must be found
};

// The module, at level model and without inputs, is widened to float64 (float64.h) and differentiated in its
// parameters: its loss is the sum of its float outputs, each element weighted at random. In each parameter the
// derivative along random directions is compared with differences, within `relative` of what the elements
// contribute. Where the differences to both sides disagree, at a corner or a step, the parameters are moved a
// little and looked at again. A parameter that gets no gradient must have differences of 0. Cancelled if there is
// no float output, or no such form.
absl::Status CheckGradient(Module& module, const CheckGradientOptions& options = {});

}  // namespace pipec
