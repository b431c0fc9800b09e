// What a step brings from the host and takes to it, for devices that are behind their host: its scalars and inputs
// lie packed in pinned memory and go to the device as one copy, on a stream of their own while the step before
// still runs; its outputs and figures come back into pinned memory. Addresses stay, so that what is enqueued can be
// repeated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "runtime/device/device.h"
#include "runtime/device/lagging_device.h"
#include "runtime/device/scalars.h"
#include "runtime/plan/plan.pb.h"

namespace pipec {

// What the device read of a step's figures.
struct StepFigures {
  double loss, gradient_norm;
};

class StepBlock {
 public:
  // The device's bytes of a block: of so many microbatches, of parameters that have scalars, and of inputs of so many
  // bytes each a microbatch.
  static int64_t DeviceBytes(int64_t microbatches, int64_t parameters, absl::Span<const int64_t> input_bytes);

  static absl::StatusOr<std::unique_ptr<StepBlock>> Create(const plan::RankPlan& rank_plan, Device& device,
                                                           LaggingDevice& lagging);

  // Enqueues the copy of these (as StepData has them) on `copies`, and `stream` goes on behind it. The step that
  // used the block before must have ended.
  absl::Status Send(Device& device, absl::Span<const StepScalars> scalars,
                    absl::Span<const std::byte* const> inputs, Stream& copies, Stream& stream);
  // Of the scalars alone, on `stream`, when no earlier copy is under way.
  absl::Status SendScalars(Device& device, absl::Span<const StepScalars> scalars, Stream& stream);

  // The device's.
  const StepScalars* scalars() const { return reinterpret_cast<const StepScalars*>(device_); }
  absl::Span<const std::byte* const> inputs() const { return inputs_; }
  // The host's, pinned: as StepData has them.
  absl::Span<std::byte* const> outputs() const { return outputs_; }
  StepFigures& figures() { return *reinterpret_cast<StepFigures*>(figures_); }
  // To be marked behind the step's work.
  Event& ended() { return *ended_; }
  // What was asked for, once the step has ended.
  void Deliver(absl::Span<std::byte* const> outputs) const;
  int64_t device_bytes() const { return sent_bytes_; }

 private:
  StepBlock() = default;
  void PackScalars(absl::Span<const StepScalars> scalars);

  int64_t parameters_ = 0, scalar_bytes_ = 0, sent_bytes_ = 0;
  std::byte *pinned_ = nullptr, *device_ = nullptr, *figures_ = nullptr;
  std::vector<int64_t> input_bytes_, output_bytes_;  // one a port and microbatch
  std::vector<std::byte*> pinned_inputs_, outputs_;
  std::vector<const std::byte*> inputs_;
  std::unique_ptr<Event> sent_, ended_;
};

}  // namespace pipec
