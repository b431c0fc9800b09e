// The suite that every transport must pass: a test program includes it and instantiates TransportSuite with its
// backends.
#pragma once

#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/transport_world.h"

namespace pipec {

struct TransportBackend {
  const char* name;
  std::function<std::unique_ptr<TransportWorld>(int ranks)> make;
};

class TransportSuite : public ::testing::TestWithParam<TransportBackend> {
 protected:
  std::unique_ptr<TransportWorld> Make(int ranks) { return GetParam().make(ranks); }
};

// Messages are matched by tag: received in another order than sent, each arrives in its place.
TEST_P(TransportSuite, MatchesByTagNotByArrival) {
  auto world = Make(2);
  constexpr int kMessages = 8, kElements = 1000;
  const auto contents = [](int m) {
    std::vector<int> values(kElements);
    std::iota(values.begin(), values.end(), 1000 * m);
    return values;
  };
  std::vector<Piece> to;
  std::vector<std::unique_ptr<Event>> received, done;
  for (int m = 0; m < kMessages; ++m) {
    received.push_back(world->NewEvent(1));
    done.push_back(world->NewEvent(0));
    to.push_back(world->NewPiece<int>(1, kElements));
    ASSERT_TRUE(world->transport(1)
                    .Receive(world->stream(1), 0, {0, 1, 0, kMessages - 1 - m}, {&to[m], 1}, *received[m])
                    .ok());
  }
  std::thread sender([&] {
    for (int m = 0; m < kMessages; ++m) {
      const Piece piece = world->NewPiece<int>(0, kElements);
      world->Write(0, piece, contents(m));
      EXPECT_TRUE(world->transport(0).Send(world->stream(0), 1, {0, 1, 0, m}, {&piece, 1}, *done[m]).ok());
    }
    for (auto& event : done) EXPECT_TRUE(world->Wait(0, *event).ok());
  });
  for (auto& event : received) EXPECT_TRUE(world->Wait(1, *event).ok());
  sender.join();
  for (int m = 0; m < kMessages; ++m) EXPECT_EQ(world->Read<int>(1, to[m]), contents(kMessages - 1 - m));
}

// Kind, stages and direction are part of the tag; the same events and the same memory serve many steps.
TEST_P(TransportSuite, BothDirectionsAtOnceForManySteps) {
  auto world = Make(2);
  auto rank = [&](int me) {
    const int other = 1 - me;
    auto sent = world->NewEvent(me), received = world->NewEvent(me);
    const Piece from = world->NewPiece<int>(me, 16), to = world->NewPiece<int>(me, 16);
    for (int step = 0; step < 200; ++step) {
      world->Write(me, from, std::vector<int>(16, 1000 * me + step));
      ASSERT_TRUE(world->transport(me)
                      .Receive(world->stream(me), other, {other, me, other, 3}, {&to, 1}, *received)
                      .ok());
      ASSERT_TRUE(
          world->transport(me).Send(world->stream(me), other, {me, other, me, 3}, {&from, 1}, *sent).ok());
      ASSERT_TRUE(world->Wait(me, *received).ok());
      ASSERT_TRUE(world->Wait(me, *sent).ok());
      if (step % 20 == 0) {
        ASSERT_EQ(world->Read<int>(me, to), std::vector<int>(16, 1000 * other + step));
      }
    }
    ASSERT_EQ(world->Read<int>(me, to), std::vector<int>(16, 1000 * other + 199));
  };
  std::thread first(rank, 0);
  rank(1);
  first.join();
}

TEST_P(TransportSuite, SeveralTensorsAndEmptyOnes) {
  auto world = Make(2);
  const Piece abc = world->NewPiece<char>(0, 3), a = world->NewPiece<char>(1, 1),
              bc = world->NewPiece<char>(1, 2);
  world->Write(0, abc, std::vector<char>{'a', 'b', 'c'});
  const std::vector<Piece> from = {{abc.data, 1}, {nullptr, 0}, {static_cast<char*>(abc.data) + 1, 2}},
                           to = {a, {nullptr, 0}, bc};
  auto sent = world->NewEvent(0), received = world->NewEvent(1);
  ASSERT_TRUE(world->transport(1).Receive(world->stream(1), 0, {0, 1, 0, 0}, to, *received).ok());
  std::thread sender([&] {
    EXPECT_TRUE(world->transport(0).Send(world->stream(0), 1, {0, 1, 0, 0}, from, *sent).ok());
    EXPECT_TRUE(world->Wait(0, *sent).ok());
  });
  ASSERT_TRUE(world->Wait(1, *received).ok());
  sender.join();
  EXPECT_EQ(world->Read<char>(1, a), std::vector<char>{'a'});
  EXPECT_EQ(world->Read<char>(1, bc), (std::vector<char>{'b', 'c'}));
}

TEST_P(TransportSuite, UnequalSizesFailAtBothEnds) {
  auto world = Make(2);
  const Piece from = world->NewPiece<int>(0, 3), to = world->NewPiece<int>(1, 4);
  auto sent = world->NewEvent(0), received = world->NewEvent(1);
  ASSERT_TRUE(world->transport(1).Receive(world->stream(1), 0, {0, 1, 0, 5}, {&to, 1}, *received).ok());
  ASSERT_TRUE(world->transport(0).Send(world->stream(0), 1, {0, 1, 0, 5}, {&from, 1}, *sent).ok());
  for (const absl::Status& status : {world->Wait(0, *sent), world->Wait(1, *received)}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("12 bytes"));
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("microbatch 5"));
  }
}

TEST_P(TransportSuite, AbortEndsEveryWaitWithTheFirstCause) {
  auto world = Make(3);
  const Piece to = world->NewPiece<int>(1, 4);
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
  const Piece to = world->NewPiece<int>(1, 4);
  auto received = world->NewEvent(1);
  ASSERT_TRUE(world->transport(1).Receive(world->stream(1), 0, {0, 1, 0, 0}, {&to, 1}, *received).ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(world->Wait(1, *received, absl::ZeroDuration())));
  EXPECT_TRUE(absl::IsDeadlineExceeded(received->Await(absl::Now())));
}

}  // namespace pipec
