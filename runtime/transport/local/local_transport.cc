#include "runtime/transport/local/local_transport.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/base/status.h"
#include "runtime/device/host_device.h"
#include "runtime/device/host_event.h"
#include "runtime/transport/local/channel.h"
#include "runtime/transport/local/device_adder.h"
#include "runtime/transport/local/sum.h"

namespace pipec {
namespace {

struct Key {
  int from_rank, to_rank;
  MessageTag tag;
  bool operator==(const Key&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const Key& k) {
    return H::combine(std::move(h), k.from_rank, k.to_rank, k.tag.from_stage, k.tag.to_stage, k.tag.kind,
                      k.tag.microbatch);
  }
};

}  // namespace

struct LocalHub::State {
  int ranks;
  LocalOptions options;
  std::mutex mutex;
  std::condition_variable changed;  // what a blocking send waits for
  // Stable addresses: a channel lives as long as the hub.
  absl::flat_hash_map<Key, std::unique_ptr<Channel>> channels;
  absl::flat_hash_map<std::pair<int, int>, std::unique_ptr<Sum>>
      sums;  // by rank within its replica and stage
  absl::Status aborted;
  absl::flat_hash_map<std::pair<int, int>, absl::Time>
      channel_free;  // by rank from and rank to, with wire_time

  // When a message arrives whose sending can begin now. Under the mutex.
  absl::Time Arrival(const Key& key) {
    if (!options.wire_time) return absl::InfinitePast();
    absl::Time& free =
        channel_free.try_emplace({key.from_rank, key.to_rank}, absl::InfinitePast()).first->second;
    return free = std::max(free, absl::Now()) + options.wire_time(key.tag);
  }
};

class LocalTransport : public Transport {
 public:
  LocalTransport(LocalHub::State& state, int rank, Device& device)
      : state_(state),
        rank_(rank),
        device_(device),
        host_copies_(dynamic_cast<HostDevice*>(&device) != nullptr) {}

  absl::string_view name() const override { return "local"; }

  absl::Status Start(absl::Span<const Route>) override { return absl::OkStatus(); }

  absl::Status Send(Stream& stream, int to_rank, const MessageTag& tag, absl::Span<const Piece> pieces,
                    Event& done) override {
    return Post(stream, {rank_, to_rank, tag}, &Channel::send, &Channel::receive, pieces, done);
  }
  absl::Status Receive(Stream& stream, int from_rank, const MessageTag& tag, absl::Span<const Piece> pieces,
                       Event& done) override {
    return Post(stream, {from_rank, rank_, tag}, &Channel::receive, &Channel::send, pieces, done);
  }

  absl::Status AddUp(Stream& stream, int stage, absl::Span<const Summand> summands, Event& done) override {
    done.Expect();
    if (!host_copies_) {
      if (adder_ == nullptr) RETURN_IF_ERROR(EquipSums());
      RETURN_IF_ERROR(adder_->Prepare(summands));
    }
    Sum* sum;
    SumEnd* own;
    {
      std::unique_lock<std::mutex> lock(state_.mutex);
      if (!state_.aborted.ok()) return state_.aborted;
      const int ranks = state_.ranks / state_.options.replicas;
      std::unique_ptr<Sum>& entry = state_.sums[{rank_ % ranks, stage}];
      if (entry == nullptr) entry = std::make_unique<Sum>(Sum{std::vector<SumEnd>(state_.options.replicas)});
      sum = entry.get();
      own = &sum->ends[rank_ / ranks];
      if (own->done != nullptr)
        return absl::FailedPreconditionError(absl::StrCat("a sum of stage ", stage, " is still under way"));
      if (!host_copies_) {
        if (own->ready == nullptr) {
          ASSIGN_OR_RETURN(own->ready, KeepEvent());
        }
        own->stream = sums_.get();
        RETURN_IF_ERROR(stream.Record(*own->ready));
      }
      own->summands.assign(summands.begin(), summands.end());
      own->done = &done;
      if (++sum->posted < state_.options.replicas) return WaitForAll(stream, sum, *own, lock);
      sum->moving = true;
      state_.changed.notify_all();
    }
    absl::Status status = CheckTypes(*sum, stage), failure;
    if (status.ok() && host_copies_) AddUpByHost(*sum);
    // Nothing is waited for: all ends are marked.
    if (status.ok() && !host_copies_) status = failure = adder_->Enqueue(*sum, *own, absl::InfinitePast());
    {
      // Free for the next sum before anybody can learn that this one is done.
      std::unique_lock<std::mutex> lock(state_.mutex);
      sum->told.clear();
      for (SumEnd& end : sum->ends) sum->told.push_back(std::exchange(end.done, nullptr));
      sum->posted = 0;
      sum->moving = false;
    }
    for (size_t replica = 0; replica < sum->told.size(); ++replica) {
      Event* const event = sum->told[replica];
      if (host_copies_) {
        static_cast<HostEvent*>(event)->Complete(status);
        continue;
      }
      if (status.ok()) status = failure = sum->ends[replica].stream->Record(*event);
      if (!status.ok()) event->Fail(status);
    }
    return failure;
  }

  void Abort(const absl::Status& status) override {
    std::unique_lock<std::mutex> lock(state_.mutex);
    if (!state_.aborted.ok()) return;
    state_.aborted = status;
    for (auto& [key, channel] : state_.channels) {
      if (channel->moving) continue;  // completes by itself
      for (ChannelEnd* end : {&channel->send, &channel->receive}) {
        if (end->done != nullptr) std::exchange(end->done, nullptr)->Fail(status);
      }
    }
    for (auto& [key, sum] : state_.sums) {
      if (sum->moving) continue;
      for (SumEnd& end : sum->ends) {
        if (end.done != nullptr) std::exchange(end.done, nullptr)->Fail(status);
      }
    }
    state_.changed.notify_all();
  }

 private:
  using End = ChannelEnd Channel::*;

  // `mine` and `other` say which end of the channel this call is.
  absl::Status Post(Stream& stream, const Key& key, End mine, End other, absl::Span<const Piece> pieces,
                    Event& done) {
    done.Expect();
    if (key.from_rank < 0 || key.from_rank >= state_.ranks || key.to_rank < 0 ||
        key.to_rank >= state_.ranks) {
      return absl::InvalidArgumentError(absl::StrCat("no rank ", key.from_rank, " or ", key.to_rank));
    }
    Channel* channel;
    {
      std::unique_lock<std::mutex> lock(state_.mutex);
      if (!state_.aborted.ok()) return state_.aborted;
      std::unique_ptr<Channel>& entry = state_.channels[key];
      if (entry == nullptr) entry = std::make_unique<Channel>();
      channel = entry.get();
      ChannelEnd& end = channel->*mine;
      if (end.done != nullptr) {
        return absl::FailedPreconditionError(absl::StrCat("a message from stage ", key.tag.from_stage, " to ",
                                                          key.tag.to_stage, ", microbatch ",
                                                          key.tag.microbatch, " is still under way"));
      }
      if (!host_copies_) {
        if (end.stream == nullptr) RETURN_IF_ERROR(Equip(key, mine, channel));
        RETURN_IF_ERROR(stream.Record(*end.ready));
      }
      end.pieces.assign(pieces.begin(), pieces.end());
      end.done = &done;
      if ((channel->*other).done == nullptr) return WaitForReceive(stream, channel, mine, lock);
      channel->moving = true;
      state_.changed.notify_all();
    }
    absl::Status status = CheckSizes(*channel, key.tag), failure;
    if (status.ok() && host_copies_) CopyByHost(*channel);
    // Nothing is waited for: both ends are marked.
    if (status.ok() && !host_copies_)
      status = failure = state_.options.move ? state_.options.move(*channel, key.from_rank, key.to_rank)
                                             : EnqueueCopy(*channel, device_, absl::InfinitePast());
    Event *sent, *received;
    absl::Time arrival;
    {
      // Free for the next message before anybody can learn that this one is done.
      std::unique_lock<std::mutex> lock(state_.mutex);
      sent = std::exchange(channel->send.done, nullptr);
      received = std::exchange(channel->receive.done, nullptr);
      channel->moving = false;
      arrival = state_.Arrival(key);
    }
    if (host_copies_) {
      static_cast<HostEvent*>(sent)->Complete(status, arrival);
      static_cast<HostEvent*>(received)->Complete(status, arrival);
      return absl::OkStatus();
    }
    for (const auto& [end, event] :
         {std::pair(&channel->send, sent), std::pair(&channel->receive, received)}) {
      if (status.ok()) status = failure = end->stream->Record(*event);
      if (!status.ok()) event->Fail(status);
    }
    return failure;
  }

  // What this rank's end of a channel needs to move messages by streams.
  absl::Status Equip(const Key& key, End mine, Channel* channel) {
    const bool receives = mine == &Channel::receive;
    std::unique_ptr<Stream>& stream = streams_[{receives ? key.from_rank : key.to_rank, receives}];
    if (stream == nullptr) {
      ASSIGN_OR_RETURN(stream, device_.NewStream());
    }
    ASSIGN_OR_RETURN((channel->*mine).ready, KeepEvent());
    if (receives) {
      ASSIGN_OR_RETURN(channel->arrived, KeepEvent());
    }
    (channel->*mine).stream = stream.get();
    return absl::OkStatus();
  }
  absl::StatusOr<Event*> KeepEvent() {
    ASSIGN_OR_RETURN(std::unique_ptr<Event> event, device_.NewEvent());
    return events_.emplace_back(std::move(event)).get();
  }

  // Until all ends of a transfer are there: `there`, which a host sees, or what marks `done`, which a stream waits for.
  // None, with the lock held again: they were not, within the limit.
  template <typename There>
  std::optional<absl::Status> Rendezvous(Stream& stream, Event& done, std::unique_lock<std::mutex>& lock,
                                         const There& there) {
    const absl::Time limit = absl::Now() + state_.options.rendezvous_limit;
    if (host_copies_) {
      const bool came = state_.changed.wait_until(lock, absl::ToChronoTime(limit),
                                                  [&] { return there() || !state_.aborted.ok(); });
      return came ? std::optional(state_.aborted) : std::nullopt;
    }
    lock.unlock();
    absl::Status status = stream.Wait(done, limit);
    if (!absl::IsDeadlineExceeded(status)) return status;
    lock.lock();
    return std::nullopt;
  }

  // In rendezvous mode a send stays here until its receive came (which then took both ends); where the copy is
  // enqueued, the rank's own work goes on behind it.
  absl::Status WaitForReceive(Stream& stream, Channel* channel, End mine,
                              std::unique_lock<std::mutex>& lock) {
    if (!state_.options.rendezvous || mine != &Channel::send) return absl::OkStatus();
    Event& done = *channel->send.done;
    const std::optional<absl::Status> came =
        Rendezvous(stream, done, lock, [&] { return channel->moving || channel->send.done == nullptr; });
    if (came) return *came;
    if (channel->send.done == &done && !channel->moving) channel->send.done = nullptr;
    return absl::DeadlineExceededError("no receive was posted for a blocking send");
  }

  // What this rank needs for sums by streams.
  absl::Status EquipSums() {
    ASSIGN_OR_RETURN(sums_, device_.NewStream());
    ASSIGN_OR_RETURN(adder_, DeviceAdder::Create(device_));
    return absl::OkStatus();
  }

  // In rendezvous mode a summand stays here until those of all replicas came.
  absl::Status WaitForAll(Stream& stream, Sum* sum, SumEnd& end, std::unique_lock<std::mutex>& lock) {
    if (!state_.options.rendezvous) return absl::OkStatus();
    Event& done = *end.done;
    const std::optional<absl::Status> came =
        Rendezvous(stream, done, lock, [&] { return sum->moving || end.done != &done; });
    if (came) return *came;
    if (end.done != &done || sum->moving) return absl::OkStatus();
    end.done = nullptr;
    --sum->posted;
    return absl::DeadlineExceededError("not all replicas came to a sum that blocks");
  }

  LocalHub::State& state_;
  const int rank_;
  Device& device_;
  const bool host_copies_;
  absl::flat_hash_map<std::pair<int, bool>, std::unique_ptr<Stream>>
      streams_;  // by peer and whether it receives
  std::vector<std::unique_ptr<Event>> events_;
  std::unique_ptr<Stream> sums_;
  std::unique_ptr<DeviceAdder> adder_;
};

LocalHub::LocalHub(int ranks, LocalOptions options) : state_(std::make_unique<State>()) {
  state_->ranks = ranks;
  state_->options = options;
}

LocalHub::~LocalHub() = default;

std::unique_ptr<Transport> LocalHub::Connect(int rank, Device& device) {
  return std::make_unique<LocalTransport>(*state_, rank, device);
}

}  // namespace pipec
