// Messages between ranks, matched by tag, never by arrival, and sums over replicas. One object a rank of a replica;
// ranks are numbered through: with P ranks in a pipeline, rank r of replica k is k P + r.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/base/dtype.h"
#include "runtime/device/device.h"

namespace pipec {

// Who sends what to whom: unique among the messages of a step.
struct MessageTag {
  int from_stage = 0;
  int to_stage = 0;
  int kind = 0;         // MessageKind's number in plan.proto
  int microbatch = -1;  // -1: once a step
  bool operator==(const MessageTag&) const = default;
};

struct Piece {
  void* data;
  int64_t bytes;
};

// Messages in one direction between this rank and another.
struct Route {
  int peer = 0;
  bool sends = false;  // this rank does
  bool operator==(const Route&) const = default;
};

// A tensor that the replicas add up, each in its place.
struct Summand {
  void* data;
  int64_t elements;
  DType dtype;  // float32 or float64
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual absl::string_view name() const = 0;

  // Once, before the first message, by the rank's own thread; all ranks do it at the same time. `routes`: all that
  // this rank will use. For what takes the peers' help to set up.
  virtual absl::Status Start(absl::Span<const Route> routes) = 0;

  // Enqueues the sending of `pieces`, which must stay as they are until `done` has happened. Sender and receiver
  // must give equal sizes; if not, both ends get FailedPrecondition.
  virtual absl::Status Send(Stream& stream, int to_rank, const MessageTag& tag, absl::Span<const Piece> pieces,
                            Event& done) = 0;
  // Enqueues the receipt into `pieces`; they hold the message once `done` has happened.
  virtual absl::Status Receive(Stream& stream, int from_rank, const MessageTag& tag, absl::Span<const Piece> pieces,
                               Event& done) = 0;

  // Enqueues the addition of `summands` over the replicas: this rank's, and those of the same rank of the others, which
  // call this with the same stage and sums of the same types. Once `done` has happened each holds the sum of all, the
  // same bytes everywhere; until then nobody may touch them. `stage` is unique among the sums of a rank that are under
  // way. Where types differ, all ends get FailedPrecondition.
  virtual absl::Status AddUp(Stream& stream, int stage, absl::Span<const Summand> summands, Event& done) = 0;

  // A failure of this rank: every wait of every other rank ends with this status (first one wins).
  virtual void Abort(const absl::Status& status) = 0;
};

}  // namespace pipec
