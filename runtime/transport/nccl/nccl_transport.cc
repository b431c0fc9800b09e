#include "runtime/transport/nccl/nccl_transport.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/base/status.h"
#include "runtime/device/cuda/cuda_device.h"
#include "runtime/device/cuda/cuda_stream.h"
#include "runtime/transport/local/channel.h"
#include "runtime/transport/local/local_transport.h"
#include "runtime/transport/nccl/nccl_status.h"
#include "runtime/transport/nccl/rank_communicators.h"

namespace pipec {
namespace {

// How often a rank that waits for its GPU asks its communicators.
constexpr absl::Duration kBetweenQuestions = absl::Milliseconds(10);

}  // namespace

absl::StatusOr<std::string> NewNcclIdentifier() {
  ncclUniqueId identifier;
  RETURN_IF_ERROR(NcclStatus(ncclGetUniqueId(&identifier), "ncclGetUniqueId", nullptr));
  return std::string(identifier.internal, sizeof identifier.internal);
}

struct NcclHub::State {
  State(int number_of_ranks, NcclOptions how)
      : options(how),
        local(number_of_ranks,
              {.move = [this](const Channel& channel, int from, int to) { return Move(channel, from, to); }}),
        communicators(number_of_ranks),
        is_here(number_of_ranks) {}

  // Both ends of a message between ranks of this process.
  absl::Status Move(const Channel& channel, int from, int to) {
    const absl::Time deadline = absl::Now() + options.timeout;
    for (const ChannelEnd* end : {&channel.send, &channel.receive})
      RETURN_IF_ERROR(end->stream->Wait(*end->ready, deadline));
    std::lock_guard<std::mutex> lock(mutex);
    for (const int rank : {from, to}) {
      if (communicators[rank] == nullptr)
        return absl::FailedPreconditionError("a message between ranks that have not started");
    }
    ASSIGN_OR_RETURN(const NcclEnd* const sender, communicators[from]->Find({to, true}));
    ASSIGN_OR_RETURN(const NcclEnd* const receiver, communicators[to]->Find({from, false}));
    const NcclPart parts[] = {{sender, channel.send.stream, channel.send.pieces},
                              {receiver, channel.receive.stream, channel.receive.pieces}};
    return IssueGroup(parts, stop, deadline);
  }

  absl::Status Aborted() {
    std::lock_guard<std::mutex> lock(abort_mutex);
    return aborted;
  }

  const RankCommunicators::Stop stop = [this] { return Aborted(); };
  ncclUniqueId identifier;
  const NcclOptions options;
  LocalHub local;
  std::mutex mutex;  // of the communicators, also while a call of NCCL uses them
  std::vector<std::unique_ptr<RankCommunicators>>
      communicators;          // by rank; null: not started, or of another process
  std::vector<char> is_here;  // by rank
  std::mutex abort_mutex;
  absl::Status aborted;
};

class NcclTransport : public Transport {
 public:
  NcclTransport(NcclHub::State& state, int rank, Device& device)
      : state_(state), rank_(rank), device_(device), here_(state.local.Connect(rank, device)) {}

  ~NcclTransport() override {
    WatchCudaDevice(device_, nullptr);
    ForgetCudaSteps(device_);
    std::lock_guard<std::mutex> lock(state_.mutex);
    state_.communicators[rank_] = nullptr;
  }

  absl::string_view name() const override { return "nccl"; }

  absl::Status Start(absl::Span<const Route> routes) override {
    const int ranks = static_cast<int>(state_.is_here.size());
    ASSIGN_OR_RETURN(std::unique_ptr<Stream> stream, device_.NewStream());
    if (dynamic_cast<CudaStream*>(stream.get()) == nullptr)
      return absl::InvalidArgumentError(
          absl::StrCat("transport nccl needs device cuda, not ", device_.name()));
    WatchCudaDevice(device_, [this] { return Watch(); });
    ASSIGN_OR_RETURN(
        std::unique_ptr<RankCommunicators> started,
        RankCommunicators::Start(state_.identifier, ranks, state_.options.replicas, rank_, device_, routes,
                                 state_.stop, absl::Now() + state_.options.timeout));
    std::lock_guard<std::mutex> lock(state_.mutex);
    state_.communicators[rank_] = std::move(started);
    if (state_.options.one_stream) stream_ = std::move(stream);
    return absl::OkStatus();
  }

  absl::Status Send(Stream& stream, int to_rank, const MessageTag& tag, absl::Span<const Piece> pieces,
                    Event& done) override {
    if (IsHere(to_rank)) return here_->Send(stream, to_rank, tag, pieces, done);
    return Issue(stream, {to_rank, true}, pieces, done);
  }
  absl::Status Receive(Stream& stream, int from_rank, const MessageTag& tag, absl::Span<const Piece> pieces,
                       Event& done) override {
    if (IsHere(from_rank)) return here_->Receive(stream, from_rank, tag, pieces, done);
    return Issue(stream, {from_rank, false}, pieces, done);
  }

  // Every replica issues when it is called: the plan has the sums of a rank in one order on all. Nobody else uses
  // their communicator, so nothing need be locked, and a replica that has to wait for the others keeps nobody up.
  absl::Status AddUp(Stream& stream, int, absl::Span<const Summand> summands, Event& done) override {
    RETURN_IF_ERROR(state_.Aborted());
    const RankCommunicators* own;
    {
      std::lock_guard<std::mutex> lock(state_.mutex);
      own = state_.communicators[rank_].get();
    }
    if (own == nullptr || own->sums().comm == nullptr)
      return absl::FailedPreconditionError("a sum of a rank that has not started, or has no replicas");
    const absl::Time deadline = absl::Now() + state_.options.timeout;
    const NcclSums& sums = own->sums();
    RETURN_IF_ERROR(stream.Record(*sums.ready));
    Stream& own_stream = stream_ != nullptr ? *stream_ : *sums.stream;
    RETURN_IF_ERROR(own_stream.Wait(*sums.ready, deadline));
    RETURN_IF_ERROR(IssueSum(sums, own_stream, summands, state_.stop, deadline));
    return own_stream.Record(done);
  }

  void Abort(const absl::Status& status) override {
    {
      std::lock_guard<std::mutex> lock(state_.abort_mutex);
      state_.aborted.Update(status);
    }
    here_->Abort(status);
  }

 private:
  bool IsHere(int rank) const {
    return rank < 0 || rank >= static_cast<int>(state_.is_here.size()) || state_.is_here[rank];
  }

  // This rank's end of a message to or from another process.
  absl::Status Issue(Stream& stream, const Route& route, absl::Span<const Piece> pieces, Event& done) {
    RETURN_IF_ERROR(state_.Aborted());
    const absl::Time deadline = absl::Now() + state_.options.timeout;
    std::lock_guard<std::mutex> lock(state_.mutex);
    if (state_.communicators[rank_] == nullptr)
      return absl::FailedPreconditionError("a message of a rank that has not started");
    ASSIGN_OR_RETURN(NcclEnd* const end, state_.communicators[rank_]->Find(route));
    RETURN_IF_ERROR(stream.Record(*end->ready));
    Stream& messages = stream_ != nullptr ? *stream_ : *end->stream;
    RETURN_IF_ERROR(messages.Wait(*end->ready, deadline));
    const NcclPart part{end, &messages, pieces};
    RETURN_IF_ERROR(IssueGroup({&part, 1}, state_.stop, deadline));
    return messages.Record(done);
  }

  // Asked while this rank waits for its GPU: whether there is still something to wait for.
  absl::Status Watch() {
    RETURN_IF_ERROR(state_.Aborted());
    const absl::Time now = absl::Now();
    if (now < next_question_) return absl::OkStatus();
    next_question_ = now + kBetweenQuestions;
    absl::Status status;
    {
      std::unique_lock<std::mutex> lock(state_.mutex, std::try_to_lock);
      // Who has it asks, too.
      if (!lock.owns_lock() || state_.communicators[rank_] == nullptr) return absl::OkStatus();
      status = state_.communicators[rank_]->CheckAsync();
    }
    if (!status.ok()) Abort(status);
    return status;
  }

  NcclHub::State& state_;
  const int rank_;
  Device& device_;
  const std::unique_ptr<Transport> here_;  // between ranks of this process
  std::unique_ptr<Stream> stream_;         // with one_stream
  absl::Time next_question_ = absl::InfinitePast();
};

NcclHub::NcclHub(int ranks, const std::string& identifier, NcclOptions options)
    : state_(std::make_unique<State>(ranks, options)) {
  std::memset(&state_->identifier, 0, sizeof state_->identifier);
  std::memcpy(state_->identifier.internal, identifier.data(),
              std::min(identifier.size(), sizeof state_->identifier.internal));
}

NcclHub::~NcclHub() = default;

std::unique_ptr<Transport> NcclHub::Connect(int rank, Device& device) {
  state_->is_here[rank] = true;
  return std::make_unique<NcclTransport>(*state_, rank, device);
}

}  // namespace pipec
