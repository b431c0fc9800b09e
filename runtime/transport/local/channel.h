// What is known of the messages of one tag from one rank to another, and how their bytes move.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/transport/transport.h"

namespace pipec {

// One end: that of the sender or that of the receiver.
struct ChannelEnd {
  std::vector<Piece> pieces;  // keeps its capacity from message to message
  Event* done = nullptr;      // null: not posted
  // Where the host cannot copy: the end's stream for messages to or from this peer, and the point of the rank's own
  // work at which the message may leave or the memory is free.
  Stream* stream = nullptr;
  Event* ready = nullptr;
};

struct Channel {
  ChannelEnd send, receive;
  Event* arrived = nullptr;  // the receiver's, for the sender's stream
  bool moving = false;       // by the thread that came second; then both ends are its own
};

// FailedPrecondition, naming the message, if the two ends differ in number or sizes of their tensors.
absl::Status CheckSizes(const Channel& channel, const MessageTag& tag);

// Copies; the host can address both ends.
void CopyByHost(const Channel& channel);
// Enqueues the copy and what orders it; `device` is the caller's. Then `arrived` is marked, and the sender's stream
// waits for it: what is left is to mark each end's `done` on its stream.
absl::Status EnqueueCopy(const Channel& channel, Device& device, absl::Time deadline);

}  // namespace pipec
