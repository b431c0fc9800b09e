// The NCCL communicators of one rank: one that all ranks start with, one of two ranks for each direction in which
// messages go, so that no message waits for one that goes another way, and one of the same rank of all replicas. They
// do not block: every call is followed by asking, with a limit.
#pragma once

#include <nccl.h>

#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "runtime/device/device.h"
#include "runtime/transport/transport.h"

namespace pipec {

// One end of a direction: the sender is rank 0 of the communicator.
struct NcclEnd {
  ncclComm_t comm = nullptr;
  bool sends = false;
  std::unique_ptr<Stream> stream;  // messages of this end alone
  std::unique_ptr<Event> ready;    // the point of the rank's own work at which one may begin
};

// What adds up over the replicas.
struct NcclSums {
  ncclComm_t comm = nullptr;       // null: there is one replica
  std::unique_ptr<Stream> stream;  // sums alone
  std::unique_ptr<Event> ready;
};

class RankCommunicators {
 public:
  using Stop = std::function<absl::Status()>;  // an error: another rank has failed

  // By the rank's thread, while all other ranks do the same; `device` is of its GPU, which is current and no other
  // rank's. `ranks`: of all replicas. After it every direction has carried a message, and the replicas a sum.
  // DeadlineExceeded if a rank does not come.
  static absl::StatusOr<std::unique_ptr<RankCommunicators>> Start(const ncclUniqueId& identifier, int ranks,
                                                                  int replicas, int rank, Device& device,
                                                                  absl::Span<const Route> routes,
                                                                  const Stop& stop, absl::Time deadline);
  // Aborts: what is still under way does not arrive.
  ~RankCommunicators();
  RankCommunicators(const RankCommunicators&) = delete;
  RankCommunicators& operator=(const RankCommunicators&) = delete;

  // NotFound if it was not among the routes.
  absl::StatusOr<NcclEnd*> Find(const Route& route);
  const NcclSums& sums() const { return sums_; }
  // The first asynchronous error of any communicator.
  absl::Status CheckAsync() const;

 private:
  RankCommunicators() = default;
  absl::Status Join(const ncclUniqueId& identifier, int ranks, int rank, const Stop& stop,
                    absl::Time deadline);
  absl::Status Split(int ranks, int rank, Device& device, absl::Span<const Route> routes, const Stop& stop,
                     absl::Time deadline);
  absl::Status JoinReplicas(int ranks, int rank, Device& device, const Stop& stop, absl::Time deadline);
  absl::Status WarmUp(Device& device, const Stop& stop, absl::Time deadline);

  ncclComm_t all_ = nullptr;
  ncclComm_t none_ = nullptr;  // where a split that gives this rank no communicator says so
  std::map<std::pair<int, bool>, NcclEnd> ends_;  // by peer and whether this rank sends
  NcclSums sums_;
};

// A message of one end, on a stream of the end's GPU.
struct NcclPart {
  const NcclEnd* end;
  Stream* stream;
  absl::Span<const Piece> pieces;
};

// Gives the parts to their streams as one group. No two calls may use one communicator at once.
absl::Status IssueGroup(absl::Span<const NcclPart> parts, const RankCommunicators::Stop& stop,
                        absl::Time deadline);

// The same for a sum over the replicas, each tensor in its place, on a stream of the rank's GPU. FailedPrecondition for
// types that are not added up.
absl::Status IssueSum(const NcclSums& sums, Stream& stream, absl::Span<const Summand> summands,
                      const RankCommunicators::Stop& stop, absl::Time deadline);

}  // namespace pipec
