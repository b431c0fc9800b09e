// The suite that every transport must pass, run over the local one between ranks of the host; and what is its own.
#include "runtime/transport/local/local_transport.h"

#include <memory>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "runtime/device/null/null_device.h"
#include "tests/support/sum_suite.h"
#include "tests/support/transport_suite.h"

namespace pipec {

std::unique_ptr<LocalWorld> MakeWorld(int ranks, LocalOptions options = {}) {
  return std::make_unique<LocalWorld>(
      ranks, [](int) { return MakeNullDevice(); }, std::move(options));
}

INSTANTIATE_TEST_SUITE_P(
    All, TransportSuite,
    ::testing::Values(TransportBackend{"Local", [](int ranks) { return MakeWorld(ranks); }},
                      TransportBackend{"LocalRendezvous",
                                       [](int ranks) { return MakeWorld(ranks, {.rendezvous = true}); }}),
    [](const auto& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(All, SumSuite,
                         ::testing::Values(SumBackend{"Local",
                                                      [](int ranks, int replicas) {
                                                        return MakeWorld(ranks, {.replicas = replicas});
                                                      }},
                                           SumBackend{"LocalRendezvous",
                                                      [](int ranks, int replicas) {
                                                        return MakeWorld(ranks, {.replicas = replicas,
                                                                                 .rendezvous = true});
                                                      }}),
                         [](const auto& info) { return std::string(info.param.name); });

namespace {

Piece Whole(std::vector<int>& values) { return {values.data(), static_cast<int64_t>(4 * values.size())}; }

// One message at a time from rank to rank, each as long as it is said to take; the other direction is another channel.
TEST(LocalTransport, MessagesTakeTheirTimeOnTheWire) {
  LocalOptions options;
  options.wire_time = [](const MessageTag& tag) { return absl::Milliseconds(tag.microbatch < 3 ? 10 : 0); };
  const auto owned = MakeWorld(2, options);
  LocalWorld& world = *owned;
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
  const auto owned = MakeWorld(2);
  LocalWorld& world = *owned;
  std::vector<int> out(3);
  const Piece from = Whole(out);
  auto first = world.NewEvent(0), second = world.NewEvent(0);
  ASSERT_TRUE(world.transport(0).Send(world.stream(0), 1, {0, 1, 0, 0}, {&from, 1}, *first).ok());
  EXPECT_EQ(world.transport(0).Send(world.stream(0), 1, {0, 1, 0, 0}, {&from, 1}, *second).code(),
            absl::StatusCode::kFailedPrecondition);
}

// Whatever order the replicas come in, the bits are those of replica 0 + replica 1 + replica 2.
TEST(LocalTransport, SumsAreInTheOrderOfTheReplicas) {
  for (const std::vector<int>& order : {std::vector<int>{0, 1, 2}, {2, 1, 0}, {1, 2, 0}}) {
    const auto world = MakeWorld(3, {.replicas = 3});
    std::vector<float> values = {1e8f, 3, -1e8f};  // (1e8 + 3) - 1e8 is 0, (1e8 - 1e8) + 3 is not
    std::vector<std::unique_ptr<Event>> done;
    for (int replica : order) {
      const Summand summand{&values[replica], 1, DType::kFloat32};
      done.push_back(world->NewEvent(replica));
      ASSERT_TRUE(
          world->transport(replica).AddUp(world->stream(replica), 0, {&summand, 1}, *done.back()).ok());
    }
    EXPECT_EQ(values, std::vector<float>(3, 0.0f));
  }
}

TEST(LocalTransport, UnequalSumsFailAtAllEnds) {
  std::vector<float> values(8);
  const std::vector<Summand> four = {{values.data(), 4, DType::kFloat32}},
                             three = {{values.data(), 3, DType::kFloat32}},
                             wide = {{values.data(), 4, DType::kFloat64}},
                             ints = {{values.data(), 4, DType::kInt32}}, two = {four[0], three[0]};
  const std::tuple<std::vector<Summand>, std::vector<Summand>, const char*> cases[] = {
      {four, three,
       "sum of stage 7 over the replicas: tensor 0 has 3 elements of float32 on replica 1, 4 of float32"},
      {four, wide, "4 elements of float64 on replica 1"},
      {four, two, "2 tensors of replica 1, 1 of replica 0"},
      {ints, ints, "tensor 0 is int32; float32 and float64"}};
  for (const auto& [first, second, words] : cases) {
    const auto world = MakeWorld(2, {.replicas = 2});
    auto a = world->NewEvent(0), b = world->NewEvent(1);
    ASSERT_TRUE(world->transport(0).AddUp(world->stream(0), 7, first, *a).ok());
    ASSERT_TRUE(world->transport(1).AddUp(world->stream(1), 7, second, *b).ok());
    for (const absl::Status& status : {world->Wait(0, *a), world->Wait(1, *b)}) {
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
      EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(words));
    }
  }
}

TEST(LocalTransport, ASumEndsAtADeadlineOrWithAnAbort) {
  const auto world = MakeWorld(2, {.replicas = 2});
  float value = 1;
  const Summand summand{&value, 1, DType::kFloat32};
  auto done = world->NewEvent(0), again = world->NewEvent(0);
  ASSERT_TRUE(world->transport(0).AddUp(world->stream(0), 0, {&summand, 1}, *done).ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(world->Wait(0, *done, absl::ZeroDuration())));
  EXPECT_EQ(world->transport(0).AddUp(world->stream(0), 0, {&summand, 1}, *again).code(),
            absl::StatusCode::kFailedPrecondition);
  world->transport(1).Abort(absl::InternalError("gone"));
  EXPECT_EQ(world->Wait(0, *done), absl::InternalError("gone"));
  EXPECT_EQ(world->transport(1).AddUp(world->stream(1), 0, {&summand, 1}, *again),
            absl::InternalError("gone"));
  const auto hasty =
      MakeWorld(2, {.replicas = 2, .rendezvous = true, .rendezvous_limit = absl::ZeroDuration()});
  EXPECT_TRUE(absl::IsDeadlineExceeded(hasty->transport(0).AddUp(hasty->stream(0), 0, {&summand, 1}, *done)));
}

TEST(LocalTransport, ABlockingSendEndsAtItsLimitOrWithAnAbort) {
  std::vector<int> out(3);
  const Piece from = Whole(out);
  const auto hasty = MakeWorld(2, {.rendezvous = true, .rendezvous_limit = absl::ZeroDuration()});
  LocalWorld& impatient = *hasty;
  auto event = impatient.NewEvent(0);
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      impatient.transport(0).Send(impatient.stream(0), 1, {0, 1, 0, 0}, {&from, 1}, *event)));
  const auto patient = MakeWorld(2, {.rendezvous = true});
  LocalWorld& world = *patient;
  auto waiting = world.NewEvent(0);
  std::thread other([&] { world.transport(1).Abort(absl::InternalError("gone")); });
  EXPECT_EQ(world.transport(0).Send(world.stream(0), 1, {0, 1, 0, 0}, {&from, 1}, *waiting),
            absl::InternalError("gone"));
  other.join();
}

}  // namespace
}  // namespace pipec
