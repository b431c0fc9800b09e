// Messages between GPUs by NCCL: of one process, a thread each, or of many processes, to which nothing need be
// given but the identifier.
//
// NCCL matches messages by their order on a communicator, not by a tag. Each direction between two ranks has a
// communicator and a stream of its own (rank_communicators.h). Two ranks of one process meet on the host, by tag
// (LocalHub); whoever comes second issues both ends as one group. A rank of another process cannot be met: there
// each end issues when it is called, and the plan has the messages of a direction in one order at both ends
// (VerifyPlan). A sum over replicas is NCCL's all-reduce, of the same bytes on every replica; of more than two the
// order of the additions is NCCL's own.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/transport/transport.h"

namespace pipec {

// One for all ranks of a run; bytes, to be handed to every process.
absl::StatusOr<std::string> NewNcclIdentifier();

struct NcclOptions {
  int replicas = 1;  // into which the ranks are divided, in equal parts one after the other
  absl::Duration timeout = absl::Seconds(300);  // how long a call of NCCL may take
  // All messages to and from other processes, and all sums, wait for each other: the strictest order a plan must
  // survive. For tests.
  bool one_stream = false;
};

// Where the ranks of this process meet. Must outlive its transports; the memory of all ranks must outlive the last
// call of any.
class NcclHub {
 public:
  // `ranks`: of all processes.
  NcclHub(int ranks, const std::string& identifier, NcclOptions options = {});
  ~NcclHub();

  // The transport of one rank, whose GPU no other rank has. All of this process must be connected before any starts.
  std::unique_ptr<Transport> Connect(int rank, Device& device);

 private:
  friend class NcclTransport;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pipec
