// The suite that every transport must pass, run over the local one; and what is the local one's own.
#include "runtime/transport/local/local_transport.h"

#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/device/null/null_device.h"

namespace pipec {
namespace {

using ::testing::HasSubstr;

// Some ranks of one transport, each with a device of its own.
class World {
 public:
  World(int ranks, LocalOptions options) : hub_(ranks, options) {
    for (int r = 0; r < ranks; ++r) {
      devices_.push_back(MakeNullDevice());
      streams_.push_back(*devices_[r]->NewStream());
      transports_.push_back(hub_.Connect(r));
    }
  }
  Transport& transport(int rank) { return *transports_[rank]; }
  Stream& stream(int rank) { return *streams_[rank]; }
  std::unique_ptr<Event> NewEvent(int rank) { return *devices_[rank]->NewEvent(); }
  absl::Status Wait(int rank, Event& event, absl::Duration limit = absl::Seconds(30)) {
    return stream(rank).Wait(event, absl::Now() + limit);
  }

 private:
  LocalHub hub_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<std::unique_ptr<Transport>> transports_;
};

using MakeWorld = std::function<std::unique_ptr<World>(int ranks)>;

struct Backend {
  const char* name;
  MakeWorld make;
};

class TransportSuite : public ::testing::TestWithParam<Backend> {
 protected:
  std::unique_ptr<World> Make(int ranks) { return GetParam().make(ranks); }
};

Piece Whole(std::vector<int>& values) { return {values.data(), static_cast<int64_t>(4 * values.size())}; }

// Messages are matched by tag: received in another order than sent, each arrives in its place.
TEST_P(TransportSuite, MatchesByTagNotByArrival) {
  auto world = Make(2);
  constexpr int kMessages = 8;
  std::vector<std::vector<int>> sent(kMessages), got(kMessages, std::vector<int>(1000));
  std::vector<std::unique_ptr<Event>> received, done;
  for (int m = 0; m < kMessages; ++m) {
    sent[m].resize(1000);
    std::iota(sent[m].begin(), sent[m].end(), 1000 * m);
    received.push_back(world->NewEvent(1));
    done.push_back(world->NewEvent(0));
    const Piece piece = Whole(got[kMessages - 1 - m]);
    ASSERT_TRUE(world->transport(1)
                    .Receive(world->stream(1), 0, {0, 1, 0, kMessages - 1 - m}, {&piece, 1}, *received[m])
                    .ok());
  }
  std::thread sender([&] {
    for (int m = 0; m < kMessages; ++m) {
      const Piece piece = Whole(sent[m]);
      EXPECT_TRUE(world->transport(0).Send(world->stream(0), 1, {0, 1, 0, m}, {&piece, 1}, *done[m]).ok());
    }
    for (auto& event : done) EXPECT_TRUE(world->Wait(0, *event).ok());
  });
  for (auto& event : received) EXPECT_TRUE(world->Wait(1, *event).ok());
  sender.join();
  EXPECT_EQ(got, sent);
}

// Kind, stages and direction are part of the tag; the same events serve many steps.
TEST_P(TransportSuite, BothDirectionsAtOnceForManySteps) {
  auto world = Make(2);
  auto rank = [&](int me) {
    const int other = 1 - me;
    auto sent = world->NewEvent(me), received = world->NewEvent(me);
    for (int step = 0; step < 200; ++step) {
      std::vector<int> out(16, 1000 * me + step), in(16, -1);
      const Piece from = Whole(out), to = Whole(in);
      ASSERT_TRUE(world->transport(me)
                      .Receive(world->stream(me), other, {other, me, other, 3}, {&to, 1}, *received)
                      .ok());
      ASSERT_TRUE(
          world->transport(me).Send(world->stream(me), other, {me, other, me, 3}, {&from, 1}, *sent).ok());
      ASSERT_TRUE(world->Wait(me, *received).ok());
      ASSERT_TRUE(world->Wait(me, *sent).ok());
      ASSERT_EQ(in, std::vector<int>(16, 1000 * other + step));
    }
  };
  std::thread first(rank, 0);
  rank(1);
  first.join();
}

TEST_P(TransportSuite, SeveralTensorsAndEmptyOnes) {
  auto world = Make(2);
  char text[] = "abc", a = 0, bc[3] = {};
  const std::vector<Piece> from = {{text, 1}, {nullptr, 0}, {text + 1, 2}},
                           to = {{&a, 1}, {nullptr, 0}, {bc, 2}};
  auto sent = world->NewEvent(0), received = world->NewEvent(1);
  ASSERT_TRUE(world->transport(1).Receive(world->stream(1), 0, {0, 1, 0, 0}, to, *received).ok());
  ASSERT_TRUE(world->transport(0).Send(world->stream(0), 1, {0, 1, 0, 0}, from, *sent).ok());
  ASSERT_TRUE(world->Wait(1, *received).ok());
  EXPECT_EQ(a, 'a');
  EXPECT_STREQ(bc, "bc");
}

TEST_P(TransportSuite, UnequalSizesFailAtBothEnds) {
  auto world = Make(2);
  std::vector<int> out(3), in(4);
  const Piece from = Whole(out), to = Whole(in);
  auto sent = world->NewEvent(0), received = world->NewEvent(1);
  ASSERT_TRUE(world->transport(1).Receive(world->stream(1), 0, {0, 1, 0, 5}, {&to, 1}, *received).ok());
  ASSERT_TRUE(world->transport(0).Send(world->stream(0), 1, {0, 1, 0, 5}, {&from, 1}, *sent).ok());
  for (const absl::Status& status : {world->Wait(0, *sent), world->Wait(1, *received)}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()), HasSubstr("12 bytes"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("microbatch 5"));
  }
}

TEST_P(TransportSuite, AbortEndsEveryWaitWithTheFirstCause) {
  auto world = Make(3);
  std::vector<int> in(4);
  const Piece to = Whole(in);
  auto received = world->NewEvent(1);
  ASSERT_TRUE(world->transport(1).Receive(world->stream(1), 0, {0, 1, 0, 0}, {&to, 1}, *received).ok());
  std::thread failing([&] {
    world->transport(2).Abort(absl::InternalError("rank 2 fell"));
    world->transport(2).Abort(absl::InternalError("and again"));
  });
  EXPECT_EQ(world->Wait(1, *received), absl::InternalError("rank 2 fell"));
  failing.join();
  auto late = world->NewEvent(1);
  EXPECT_EQ(world->transport(1).Receive(world->stream(1), 0, {0, 1, 0, 1}, {&to, 1}, *late),
            absl::InternalError("rank 2 fell"));
}

TEST_P(TransportSuite, AWaitEndsAtItsDeadline) {
  auto world = Make(2);
  std::vector<int> in(4);
  const Piece to = Whole(in);
  auto received = world->NewEvent(1);
  ASSERT_TRUE(world->transport(1).Receive(world->stream(1), 0, {0, 1, 0, 0}, {&to, 1}, *received).ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(world->Wait(1, *received, absl::ZeroDuration())));
}

INSTANTIATE_TEST_SUITE_P(
    All, TransportSuite,
    ::testing::Values(
        Backend{"Local", [](int ranks) { return std::make_unique<World>(ranks, LocalOptions{}); }},
        Backend{"LocalRendezvous",
                [](int ranks) { return std::make_unique<World>(ranks, LocalOptions{.rendezvous = true}); }}),
    [](const auto& info) { return std::string(info.param.name); });

// One message at a time from rank to rank, each as long as it is said to take; the other direction is another channel.
TEST(LocalTransport, MessagesTakeTheirTimeOnTheWire) {
  LocalOptions options;
  options.wire_time = [](const MessageTag& tag) { return absl::Milliseconds(tag.microbatch < 3 ? 10 : 0); };
  World world(2, options);
  std::vector<int> sent(4, 7), got(4);
  const Piece from = Whole(sent), to = Whole(got);
  const absl::Time start = absl::Now();
  std::vector<std::unique_ptr<Event>> done;
  for (int m = 0; m < 3; ++m) {
    for (const auto& [sender, receiver] : {std::pair(0, 1), std::pair(1, 0)}) {
      done.push_back(world.NewEvent(sender));
      ASSERT_TRUE(
          world.transport(sender)
              .Send(world.stream(sender), receiver, {sender, receiver, 0, m}, {&from, 1}, *done.back())
              .ok());
      done.push_back(world.NewEvent(receiver));
      ASSERT_TRUE(
          world.transport(receiver)
              .Receive(world.stream(receiver), sender, {sender, receiver, 0, m}, {&to, 1}, *done.back())
              .ok());
    }
  }
  // The last of three can arrive after 30 ms at the soonest.
  EXPECT_EQ(world.Wait(1, *done[9], start + absl::Milliseconds(29) - absl::Now()).code(),
            absl::StatusCode::kDeadlineExceeded);
  for (size_t k = 0; k < done.size(); ++k) ASSERT_TRUE(world.Wait(k % 2, *done[k]).ok());
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(30));
}

TEST(LocalTransport, ASecondMessageOfOneTagIsRefused) {
  World world(2, {});
  std::vector<int> out(3);
  const Piece from = Whole(out);
  auto first = world.NewEvent(0), second = world.NewEvent(0);
  ASSERT_TRUE(world.transport(0).Send(world.stream(0), 1, {0, 1, 0, 0}, {&from, 1}, *first).ok());
  EXPECT_EQ(world.transport(0).Send(world.stream(0), 1, {0, 1, 0, 0}, {&from, 1}, *second).code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(LocalTransport, ABlockingSendEndsAtItsLimitOrWithAnAbort) {
  std::vector<int> out(3);
  const Piece from = Whole(out);
  World impatient(2, {.rendezvous = true, .rendezvous_limit = absl::ZeroDuration()});
  auto event = impatient.NewEvent(0);
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      impatient.transport(0).Send(impatient.stream(0), 1, {0, 1, 0, 0}, {&from, 1}, *event)));
  World world(2, {.rendezvous = true});
  auto waiting = world.NewEvent(0);
  std::thread other([&] { world.transport(1).Abort(absl::InternalError("gone")); });
  EXPECT_EQ(world.transport(0).Send(world.stream(0), 1, {0, 1, 0, 0}, {&from, 1}, *waiting),
            absl::InternalError("gone"));
  other.join();
}

}  // namespace
}  // namespace pipec
