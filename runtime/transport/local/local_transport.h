// Messages between ranks that are threads of one process, and sums over replicas. Send and Receive leave descriptors;
// whoever comes second moves the bytes, from arena to arena. Where the host can address the memory of the devices (cpu,
// null, replay) that is a copy then and there. Elsewhere (cuda) it is enqueued: the copy, on a stream of the receiver
// that serves messages from this sender, starts when both ends' streams have come to their calls; nothing waits on the
// host for the device. A sum is made by the replica that comes last, in the order of the replicas.
#pragma once

#include <functional>
#include <memory>

#include "absl/time/time.h"
#include "runtime/transport/transport.h"

namespace pipec {

struct Channel;

struct LocalOptions {
  // Into which the ranks are divided, in equal parts one after the other.
  int replicas = 1;
  // Send returns only when its receive has been posted: the strictest transport a plan must survive. For
  // tests.
  bool rendezvous = false;
  absl::Duration rendezvous_limit = absl::Seconds(300);
  // How long a message is on its way, on a channel that carries one at a time from one rank to another; null: as long
  // as copying takes. For device replay.
  std::function<absl::Duration(const MessageTag&)> wire_time;
  // Enqueues a message where the host cannot copy, on the streams of both ends, each behind its `ready`
  // (channel.h); null: as one copy.
  std::function<absl::Status(const Channel&, int from_rank, int to_rank)> move;
};

// Where the ranks of one process meet. Must outlive its transports; the memory of all ranks must outlive the
// last call of any of them.
class LocalHub {
 public:
  explicit LocalHub(int ranks, LocalOptions options = {});
  ~LocalHub();

  // The transport of one rank, between devices of one kind. At most one message of a tag may be under way between two
  // ranks: a second is FailedPrecondition. After the first message of each tag nothing is allocated.
  std::unique_ptr<Transport> Connect(int rank, Device& device);

 private:
  friend class LocalTransport;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pipec
