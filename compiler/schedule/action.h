// What a rank does next. Text form: `<stage><KIND><microbatch>`, for example 2F0 (DESIGN.md, "Words").
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipec {

enum class ActionKind : uint8_t {
  kF,           // forward
  kB,           // input and weight gradients at once
  kI,           // input gradients
  kW,           // weight gradients
  kSendF,       // activations to a later stage
  kRecvF,       // activations from an earlier stage
  kSendB,       // gradients to an earlier stage
  kRecvB,       // gradients from a later stage
  kReduceGrad,  // the replicas of a stage add up their accumulators (once a step)
  kReduceTied,  // owners of a shared parameter exchange their accumulators (once a step)
  kNorm,        // all ranks exchange norms, loss and loss weight (once a step)
  kUpdate,      // the optimizer, for the parameters of one stage (once a step)
};

// "F", "SEND_F", ...
absl::string_view Name(ActionKind kind);

bool IsCompute(ActionKind kind);   // F, B, I, W
bool IsMessage(ActionKind kind);   // SEND_F, RECV_F, SEND_B, RECV_B
bool Sends(ActionKind kind);       // SEND_F, SEND_B

struct Action {
  ActionKind kind = ActionKind::kF;
  // The stage that computes; for a message the stage on this rank's side; -1 for kReduceTied and kNorm.
  int stage = -1;
  // -1 for what happens once a step.
  int microbatch = -1;
  // For a message: the stage at the other end; -1 otherwise.
  int peer_stage = -1;
  // Schedules without flush (Schedule::weight_delay): how many steps behind the newest one of its round it works.
  int lag = 0;
  // An F that a device may overlap with the B that comes after it; PyTorch's CSV writes both in one cell.
  bool paired = false;

  bool operator==(const Action&) const = default;
};

// "2F0"; a message to a stage that is not the neighbour names both: "0SEND_F3>2". "NORM", "1UPDATE". A lag of 1 behind
// it: "2B3-1".
std::string ToString(const Action& action);

// The inverse, for messages to or from the neighbour stage as well.
absl::StatusOr<Action> ParseAction(absl::string_view text);

}  // namespace pipec
