// The suite of sums over replicas, which every transport must pass: a test program includes it and instantiates
// SumSuite with its backends. Replicas of two ranks each.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/transport_world.h"

namespace pipec {

struct SumBackend {
  const char* name;
  std::function<std::unique_ptr<TransportWorld>(int ranks, int replicas)> make;
};

class SumSuite : public ::testing::TestWithParam<SumBackend> {
 protected:
  static constexpr int kRanks = 2;
  std::unique_ptr<TransportWorld> Make(int replicas) { return GetParam().make(kRanks * replicas, replicas); }
  // What a rank of some replicas does, each on a thread of its own.
  static void OnAll(int replicas, const std::function<void(int rank)>& work) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < kRanks * replicas; ++rank) threads.emplace_back(work, rank);
    for (std::thread& thread : threads) thread.join();
  }
  template <typename T>
  static Summand Whole(const Piece& piece) {
    constexpr DType kType = std::is_same_v<T, float> ? DType::kFloat32 : DType::kFloat64;
    return {piece.data, piece.bytes / static_cast<int64_t>(sizeof(T)), kType};
  }
};

// Every element of every tensor, on every replica, step after step; what is no whole block of anything, and nothing.
TEST_P(SumSuite, EveryReplicaHasTheSum) {
  for (int replicas : {2, 3}) {
    auto world = Make(replicas);
    OnAll(replicas, [&](int me) {
      const int replica = me / kRanks;
      const Piece large = world->NewPiece<float>(me, 1003), small = world->NewPiece<double>(me, 3);
      const std::vector<Summand> summands = {
          Whole<float>(large), {nullptr, 0, DType::kFloat32}, Whole<double>(small)};
      auto done = world->NewEvent(me);
      for (int step = 0; step < 3; ++step) {
        std::vector<float> values(1003);
        for (size_t i = 0; i < values.size(); ++i)
          values[i] = static_cast<float>((i * 7 + me % kRanks + step * 3) % 101 * (replica + 1));
        world->Write(me, large, values);
        world->Write(me, small, std::vector<double>(3, replica + 0.5));
        ASSERT_TRUE(world->transport(me).AddUp(world->stream(me), 4, summands, *done).ok());
        ASSERT_TRUE(world->Wait(me, *done).ok());
        const int weights = replicas * (replicas + 1) / 2;
        std::vector<float> wanted(1003);
        for (size_t i = 0; i < wanted.size(); ++i)
          wanted[i] = static_cast<float>((i * 7 + me % kRanks + step * 3) % 101 * weights);
        ASSERT_EQ(world->Read<float>(me, large), wanted) << "rank " << me << ", step " << step;
        ASSERT_EQ(world->Read<double>(me, small), std::vector<double>(3, replicas * replicas / 2.0));
      }
    });
  }
}

// Sums of several stages are under way at once, in one order everywhere.
TEST_P(SumSuite, SeveralStagesAtOnce) {
  auto world = Make(2);
  OnAll(2, [&](int me) {
    std::vector<Piece> pieces;
    std::vector<std::unique_ptr<Event>> done;
    for (int stage = 0; stage < 4; ++stage) {
      pieces.push_back(world->NewPiece<float>(me, 100 + stage));
      world->Write(me, pieces[stage],
                   std::vector<float>(100 + stage, static_cast<float>(stage + 10 * (me / kRanks))));
      const Summand summand = Whole<float>(pieces[stage]);
      done.push_back(world->NewEvent(me));
      ASSERT_TRUE(world->transport(me).AddUp(world->stream(me), stage, {&summand, 1}, *done[stage]).ok());
    }
    for (int stage = 3; stage >= 0; --stage) {
      ASSERT_TRUE(world->Wait(me, *done[stage]).ok());
      EXPECT_EQ(world->Read<float>(me, pieces[stage]),
                std::vector<float>(100 + stage, static_cast<float>(2 * stage + 10)));
    }
  });
}

}  // namespace pipec
