#include "runtime/transport/local/local_transport.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/base/status.h"
#include "runtime/device/host_event.h"

namespace pipec {
namespace {

// One end of a message that waits for the other.
struct End {
  std::vector<Piece> pieces;  // keeps its capacity from message to message
  HostEvent* done = nullptr;  // null: not posted
};

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

struct Channel {
  End send, receive;
  bool copying = false;  // by the thread that came second; then both ends are its own
};

absl::Status CheckSizes(absl::Span<const Piece> sent, absl::Span<const Piece> received, const Key& key) {
  auto name = [&] {
    return absl::StrCat("message from stage ", key.tag.from_stage, " to ", key.tag.to_stage, ", microbatch ",
                        key.tag.microbatch);
  };
  if (sent.size() != received.size()) {
    return absl::FailedPreconditionError(
        absl::StrCat(name(), ": ", sent.size(), " tensors sent, ", received.size(), " awaited"));
  }
  for (size_t i = 0; i < sent.size(); ++i) {
    if (sent[i].bytes != received[i].bytes) {
      return absl::FailedPreconditionError(absl::StrCat(name(), ": tensor ", i, " has ", sent[i].bytes,
                                                        " bytes where it is sent, ", received[i].bytes,
                                                        " where it is awaited"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

struct LocalHub::State {
  int ranks;
  LocalOptions options;
  std::mutex mutex;
  std::condition_variable changed;  // what a blocking send waits for
  // Stable addresses: a channel lives as long as the hub.
  absl::flat_hash_map<Key, std::unique_ptr<Channel>> channels;
  absl::Status aborted;
  absl::flat_hash_map<std::pair<int, int>, absl::Time> channel_free;  // by rank from and rank to, with wire_time

  // When a message arrives whose sending can begin now. Under the mutex.
  absl::Time Arrival(const Key& key) {
    if (!options.wire_time) return absl::InfinitePast();
    absl::Time& free = channel_free.try_emplace({key.from_rank, key.to_rank}, absl::InfinitePast()).first->second;
    return free = std::max(free, absl::Now()) + options.wire_time(key.tag);
  }
};

class LocalTransport : public Transport {
 public:
  LocalTransport(LocalHub::State& state, int rank) : state_(state), rank_(rank) {}

  absl::string_view name() const override { return "local"; }

  absl::Status Send(Stream&, int to_rank, const MessageTag& tag, absl::Span<const Piece> pieces,
                    Event& done) override {
    return Post({rank_, to_rank, tag}, &Channel::send, &Channel::receive, pieces, done);
  }
  absl::Status Receive(Stream&, int from_rank, const MessageTag& tag, absl::Span<const Piece> pieces,
                       Event& done) override {
    return Post({from_rank, rank_, tag}, &Channel::receive, &Channel::send, pieces, done);
  }

  void Abort(const absl::Status& status) override {
    std::unique_lock<std::mutex> lock(state_.mutex);
    if (!state_.aborted.ok()) return;
    state_.aborted = status;
    for (auto& [key, channel] : state_.channels) {
      if (channel->copying) continue;  // completes by itself
      for (End* end : {&channel->send, &channel->receive}) {
        if (end->done != nullptr) std::exchange(end->done, nullptr)->Complete(status);
      }
    }
    state_.changed.notify_all();
  }

 private:
  // `mine` and `other` say which end of the channel this call is.
  absl::Status Post(const Key& key, End Channel::*mine, End Channel::*other, absl::Span<const Piece> pieces,
                    Event& done) {
    HostEvent* event = dynamic_cast<HostEvent*>(&done);
    if (event == nullptr) return absl::InvalidArgumentError("the local transport needs events of the host");
    event->Reset();
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
      if ((channel->*mine).done != nullptr) {
        return absl::FailedPreconditionError(absl::StrCat("a message from stage ", key.tag.from_stage, " to ",
                                                          key.tag.to_stage, ", microbatch ",
                                                          key.tag.microbatch, " is still under way"));
      }
      (channel->*mine).pieces.assign(pieces.begin(), pieces.end());
      (channel->*mine).done = event;
      if ((channel->*other).done == nullptr) return WaitForReceive(channel, mine, lock);
      channel->copying = true;
      state_.changed.notify_all();
    }
    absl::Status status = CheckSizes(channel->send.pieces, channel->receive.pieces, key);
    for (size_t i = 0; status.ok() && i < channel->send.pieces.size(); ++i) {
      if (channel->send.pieces[i].bytes == 0) continue;
      std::memcpy(channel->receive.pieces[i].data, channel->send.pieces[i].data,
                  channel->send.pieces[i].bytes);
    }
    HostEvent *sent, *received;
    absl::Time arrival;
    {
      // Free for the next message before anybody can learn that this one is done.
      std::unique_lock<std::mutex> lock(state_.mutex);
      sent = std::exchange(channel->send.done, nullptr);
      received = std::exchange(channel->receive.done, nullptr);
      channel->copying = false;
      arrival = state_.Arrival(key);
    }
    sent->Complete(status, arrival);
    received->Complete(status, arrival);
    return absl::OkStatus();
  }

  // In rendezvous mode a send stays here until its receive came (which then took both ends).
  absl::Status WaitForReceive(Channel* channel, End Channel::*mine, std::unique_lock<std::mutex>& lock) {
    if (!state_.options.rendezvous || mine != &Channel::send) return absl::OkStatus();
    const auto limit = absl::ToChronoTime(absl::Now() + state_.options.rendezvous_limit);
    const bool came = state_.changed.wait_until(lock, limit, [this, channel] {
      return channel->copying || channel->send.done == nullptr || !state_.aborted.ok();
    });
    if (!came) {
      channel->send.done = nullptr;
      return absl::DeadlineExceededError("no receive was posted for a blocking send");
    }
    return state_.aborted;
  }

  LocalHub::State& state_;
  int rank_;
};

LocalHub::LocalHub(int ranks, LocalOptions options) : state_(std::make_unique<State>()) {
  state_->ranks = ranks;
  state_->options = options;
}

LocalHub::~LocalHub() = default;

std::unique_ptr<Transport> LocalHub::Connect(int rank) {
  return std::make_unique<LocalTransport>(*state_, rank);
}

}  // namespace pipec
