// From a plan's instruction to what a device prepares.
#pragma once

#include "absl/status/statusor.h"
#include "runtime/base/attributes.h"
#include "runtime/device/device.h"
#include "runtime/plan/plan.pb.h"

namespace pipec {

TensorType TypeOf(const plan::Tensor& tensor);

Attributes AttributesOf(const plan::Instruction& instruction);

// `constants[t]`: host contents of tensor t of the plan, null if it is no constant.
KernelSpec SpecOf(const plan::RankPlan& rank_plan, const plan::Instruction& instruction,
                  absl::Span<const std::byte* const> constants);

}  // namespace pipec
