#include "runtime/transport/nccl/rank_communicators.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/base/status.h"
#include "runtime/device/cuda/cuda_stream.h"
#include "runtime/transport/nccl/nccl_status.h"

namespace pipec {
namespace {

// Until nothing of the communicator is in progress.
absl::Status Await(ncclComm_t comm, absl::string_view call, const RankCommunicators::Stop& stop,
                   absl::Time deadline) {
  for (int64_t tries = 0;; ++tries) {
    ncclResult_t state = ncclSuccess;
    RETURN_IF_ERROR(NcclStatus(ncclCommGetAsyncError(comm, &state), "ncclCommGetAsyncError", comm));
    if (state != ncclInProgress) return NcclStatus(state, call, comm);
    RETURN_IF_ERROR(stop());
    if (tries < 1000) continue;
    if (absl::Now() > deadline)
      return absl::DeadlineExceededError(absl::StrCat(call, ": the other ranks did not come to it in time"));
    absl::SleepFor(absl::Microseconds(20));
  }
}

// With whom `rank` is paired in a round: over rounds 0 ... n - 2 (n: ranks, made even) every two ranks are once.
// -1: with nobody.
int Partner(int rank, int ranks, int round) {
  const int odd = ranks - 1 + ranks % 2;  // the last rank of an even number stands still
  const int partner = rank == odd ? -1 : ((round - rank) % odd + odd) % odd;
  if (rank != odd) return partner != rank ? partner : odd < ranks ? odd : -1;
  for (int other = 0; other < odd; ++other) {
    if (2 * other % odd == round) return other;
  }
  return -1;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RankCommunicators>> RankCommunicators::Start(
    const ncclUniqueId& identifier, int ranks, int replicas, int rank, Device& device,
    absl::Span<const Route> routes, const Stop& stop, absl::Time deadline) {
  std::unique_ptr<RankCommunicators> made(new RankCommunicators);
  RETURN_IF_ERROR(made->Join(identifier, ranks, rank, stop, deadline));
  RETURN_IF_ERROR(made->Split(ranks, rank, device, routes, stop, deadline));
  if (replicas > 1) RETURN_IF_ERROR(made->JoinReplicas(ranks / replicas, rank, device, stop, deadline));
  RETURN_IF_ERROR(made->WarmUp(device, stop, deadline));
  return made;
}

// All at once: to abort one may wait for the kernels of the others on this GPU, which end when they are aborted.
RankCommunicators::~RankCommunicators() {
  const bool together = ncclGroupStart() == ncclSuccess;
  for (auto& [route, end] : ends_) {
    if (end.comm != nullptr) ncclCommAbort(end.comm);
  }
  if (sums_.comm != nullptr) ncclCommAbort(sums_.comm);
  if (all_ != nullptr) ncclCommAbort(all_);
  if (together) ncclGroupEnd();
}

absl::Status RankCommunicators::Join(const ncclUniqueId& identifier, int ranks, int rank, const Stop& stop,
                                     absl::Time deadline) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  RETURN_IF_ERROR(NcclStatus(ncclCommInitRankConfig(&all_, ranks, identifier, rank, &config),
                             "ncclCommInitRankConfig", nullptr));
  return Await(all_, "ncclCommInitRankConfig", stop, deadline);
}

// All ranks must split as often; one split makes the communicators of every pair of a round.
absl::Status RankCommunicators::Split(int ranks, int rank, Device& device, absl::Span<const Route> routes,
                                      const Stop& stop, absl::Time deadline) {
  for (int round = 0; round < ranks - 1 + ranks % 2; ++round) {
    const int peer = Partner(rank, ranks, round);
    for (const bool upward : {true, false}) {  // from the lower rank to the higher
      const bool sends = (rank < peer) == upward;
      const bool used = std::find(routes.begin(), routes.end(), Route{peer, sends}) != routes.end();
      // NCCL writes there later, even if nobody waits for it any more.
      ncclComm_t& comm = used ? ends_[{peer, sends}].comm : none_;
      RETURN_IF_ERROR(NcclStatus(ncclCommSplit(all_, used ? std::min(rank, peer) : NCCL_SPLIT_NOCOLOR,
                                               sends ? 0 : 1, &comm, nullptr),
                                 "ncclCommSplit", all_));
      RETURN_IF_ERROR(Await(all_, "ncclCommSplit", stop, deadline));
      if (!used) continue;
      int members = 0;
      RETURN_IF_ERROR(Await(comm, "ncclCommSplit", stop, deadline));
      RETURN_IF_ERROR(NcclStatus(ncclCommCount(comm, &members), "ncclCommCount", comm));
      if (members != 2) {
        return absl::FailedPreconditionError(absl::StrCat("rank ", rank,
                                                          sends ? " sends to" : " receives from", " rank ",
                                                          peer, ", which knows of no message"));
      }
      NcclEnd& end = ends_[{peer, sends}];
      end.sends = sends;
      ASSIGN_OR_RETURN(end.stream, device.NewStream());
      ASSIGN_OR_RETURN(end.ready, device.NewEvent());
    }
  }
  return absl::OkStatus();
}

// `ranks`: of one replica.
absl::Status RankCommunicators::JoinReplicas(int ranks, int rank, Device& device, const Stop& stop,
                                             absl::Time deadline) {
  RETURN_IF_ERROR(
      NcclStatus(ncclCommSplit(all_, rank % ranks, rank, &sums_.comm, nullptr), "ncclCommSplit", all_));
  RETURN_IF_ERROR(Await(all_, "ncclCommSplit", stop, deadline));
  RETURN_IF_ERROR(Await(sums_.comm, "ncclCommSplit", stop, deadline));
  ASSIGN_OR_RETURN(sums_.stream, device.NewStream());
  ASSIGN_OR_RETURN(sums_.ready, device.NewEvent());
  return absl::OkStatus();
}

// Two ranks connect when the first message goes between them, which a graph cannot capture.
absl::Status RankCommunicators::WarmUp(Device& device, const Stop& stop, absl::Time deadline) {
  std::vector<Piece> bytes;
  for (size_t i = 0; i < ends_.size(); ++i) {
    ASSIGN_OR_RETURN(std::byte* const memory, device.Allocate(1));
    bytes.push_back({memory, 1});
  }
  std::vector<NcclPart> parts;
  for (auto& [route, end] : ends_) parts.push_back({&end, end.stream.get(), {&bytes[parts.size()], 1}});
  RETURN_IF_ERROR(IssueGroup(parts, stop, deadline));
  for (auto& [route, end] : ends_) RETURN_IF_ERROR(end.stream->Synchronize(deadline));
  if (sums_.comm == nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(std::byte* const memory, device.Allocate(sizeof(float)));
  const Summand zero{memory, 1, DType::kFloat32};
  RETURN_IF_ERROR(IssueSum(sums_, *sums_.stream, {&zero, 1}, stop, deadline));
  return sums_.stream->Synchronize(deadline);
}

absl::StatusOr<NcclEnd*> RankCommunicators::Find(const Route& route) {
  const auto it = ends_.find({route.peer, route.sends});
  if (it != ends_.end()) return &it->second;
  return absl::NotFoundError(
      absl::StrCat("no messages were announced ", route.sends ? "to" : "from", " rank ", route.peer));
}

absl::Status RankCommunicators::CheckAsync() const {
  for (const auto& [route, end] : ends_) {
    ncclResult_t state = ncclSuccess;
    RETURN_IF_ERROR(NcclStatus(ncclCommGetAsyncError(end.comm, &state), "ncclCommGetAsyncError", end.comm));
    RETURN_IF_ERROR(NcclStatus(
        state, absl::StrCat("messages ", route.second ? "to" : "from", " rank ", route.first), end.comm));
  }
  if (sums_.comm == nullptr) return absl::OkStatus();
  ncclResult_t state = ncclSuccess;
  RETURN_IF_ERROR(NcclStatus(ncclCommGetAsyncError(sums_.comm, &state), "ncclCommGetAsyncError", sums_.comm));
  return NcclStatus(state, "sums over the replicas", sums_.comm);
}

absl::Status IssueGroup(absl::Span<const NcclPart> parts, const RankCommunicators::Stop& stop,
                        absl::Time deadline) {
  RETURN_IF_ERROR(NcclStatus(ncclGroupStart(), "ncclGroupStart", nullptr));
  absl::Status status;
  for (const NcclPart& part : parts) {
    const cudaStream_t stream = static_cast<CudaStream*>(part.stream)->get();
    for (const Piece& piece : part.pieces) {
      if (piece.bytes == 0) continue;
      const ncclComm_t comm = part.end->comm;
      status.Update(
          part.end->sends
              ? NcclStatus(ncclSend(piece.data, piece.bytes, ncclUint8, 1, comm, stream), "ncclSend", comm)
              : NcclStatus(ncclRecv(piece.data, piece.bytes, ncclUint8, 0, comm, stream), "ncclRecv", comm));
    }
  }
  status.Update(NcclStatus(ncclGroupEnd(), "ncclGroupEnd", nullptr));
  RETURN_IF_ERROR(status);
  // Until then nothing need be on the streams.
  for (const NcclPart& part : parts) RETURN_IF_ERROR(Await(part.end->comm, "ncclGroupEnd", stop, deadline));
  return absl::OkStatus();
}

absl::Status IssueSum(const NcclSums& sums, Stream& on, absl::Span<const Summand> summands,
                      const RankCommunicators::Stop& stop, absl::Time deadline) {
  for (const Summand& summand : summands) {
    if (summand.dtype != DType::kFloat32 && summand.dtype != DType::kFloat64) {
      return absl::FailedPreconditionError(absl::StrCat("a sum over the replicas of ", Name(summand.dtype),
                                                        "; float32 and float64 are added up"));
    }
  }
  RETURN_IF_ERROR(NcclStatus(ncclGroupStart(), "ncclGroupStart", nullptr));
  const cudaStream_t stream = static_cast<CudaStream&>(on).get();
  absl::Status status;
  for (const Summand& summand : summands) {
    if (summand.elements == 0) continue;
    const ncclDataType_t type = summand.dtype == DType::kFloat32 ? ncclFloat32 : ncclFloat64;
    status.Update(NcclStatus(
        ncclAllReduce(summand.data, summand.data, summand.elements, type, ncclSum, sums.comm, stream),
        "ncclAllReduce", sums.comm));
  }
  status.Update(NcclStatus(ncclGroupEnd(), "ncclGroupEnd", nullptr));
  RETURN_IF_ERROR(status);
  return Await(sums.comm, "ncclGroupEnd", stop, deadline);
}

}  // namespace pipec
