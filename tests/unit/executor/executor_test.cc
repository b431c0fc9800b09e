#include "runtime/executor/executor.h"

#include <dlfcn.h>
#include <execinfo.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/support/linear_run.h"
#include "tests/unit/support/scratch.h"

// Counts the allocations of this thread while it is told to; those of oneDNN, which are not ours, apart.
namespace {
thread_local bool counting = false;
thread_local long allocations = 0;

bool CalledFromOneDnn() {
  void* frames[24];
  const int count = backtrace(frames, 24);
  for (int i = 0; i < count; ++i) {
    Dl_info info;
    if (dladdr(frames[i], &info) != 0 && std::strstr(info.dli_fname, "libdnnl") != nullptr) return true;
  }
  return false;
}
}  // namespace

// Not inlined: the compiler would find malloc and delete unequal.
__attribute__((noinline)) void* operator new(std::size_t size) {
  if (counting) {
    counting = false;  // backtrace may allocate
    if (!CalledFromOneDnn()) ++allocations;
    counting = true;
  }
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
__attribute__((noinline)) void operator delete(void* memory) noexcept { std::free(memory); }
__attribute__((noinline)) void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace pipec {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::LinearByDefinition;
using testing::LinearOptions;
using testing::LinearRank;
using testing::LinearResult;
using testing::LinearShape;
using testing::RunLinear;

std::string Directory() { return testing::ScratchPath("plan"); }

TEST(Executor, TrainsAsTheDefinitionSays) {
  for (int ranks : {1, 2}) {
    for (int microbatches : {1, 2, 5}) {
      const LinearShape shape{.ranks = ranks, .microbatches = microbatches};
      const LinearResult got = RunLinear(shape, Directory(), {.steps = 4});
      ASSERT_TRUE(got.status.ok()) << got.status;
      const LinearResult wanted = LinearByDefinition(shape, 4);
      for (int step = 0; step < 4; ++step) {
        EXPECT_NEAR(got.losses[step], wanted.losses[step], 1e-5 * wanted.losses[step]);
        EXPECT_NEAR(got.norms[step], wanted.norms[step], 1e-5 * wanted.norms[step]);
      }
      for (size_t i = 0; i < wanted.parameters.size(); ++i) {
        EXPECT_NEAR(got.parameters[i], wanted.parameters[i], 1e-5);
      }
      EXPECT_LT(got.losses[3], got.losses[0] * 10) << "and nothing blew up";
    }
  }
}

TEST(Executor, TwoRanksGiveTheBitsOfOne) {
  const LinearResult one = RunLinear({.ranks = 1}, Directory()), two = RunLinear({.ranks = 2}, Directory());
  ASSERT_TRUE(one.status.ok() && two.status.ok()) << one.status << two.status;
  EXPECT_EQ(one.losses, two.losses);
  EXPECT_EQ(one.norms, two.norms);
  EXPECT_EQ(one.parameters, two.parameters);
}

// So many replicas are so many times the microbatches, and stay one model.
TEST(Executor, ReplicasTrainAsTheDefinitionSays) {
  for (int ranks : {1, 2}) {
    for (int replicas : {2, 3}) {
      const LinearShape shape{.ranks = ranks, .microbatches = 2, .replicas = replicas};
      const LinearResult got = RunLinear(shape, Directory(), {.steps = 4, .evaluate = true});
      ASSERT_TRUE(got.status.ok()) << got.status;
      const LinearResult wanted = LinearByDefinition({.microbatches = 2 * replicas}, 4);
      for (int step = 0; step < 4; ++step) {
        EXPECT_NEAR(got.losses[step], wanted.losses[step], 1e-5 * wanted.losses[step]);
        EXPECT_NEAR(got.norms[step], wanted.norms[step], 1e-5 * wanted.norms[step]);
      }
      for (size_t i = 0; i < wanted.parameters.size(); ++i)
        EXPECT_NEAR(got.parameters[i], wanted.parameters[i], 1e-5);
      for (const std::vector<float>& parameters : got.of_replicas) EXPECT_EQ(parameters, got.parameters);
    }
  }
}

TEST(Executor, ReplicasOfAMicrobatchGiveTheBitsOfAsManyMicrobatches) {
  const LinearResult one = RunLinear({.ranks = 1, .microbatches = 4}, Directory());
  const LinearResult four = RunLinear({.ranks = 2, .microbatches = 1, .replicas = 4}, Directory());
  ASSERT_TRUE(one.status.ok() && four.status.ok()) << one.status << four.status;
  EXPECT_EQ(one.losses, four.losses);
  EXPECT_EQ(one.norms, four.norms);
  EXPECT_EQ(one.parameters, four.parameters);
}

TEST(Executor, CompletesWhenSendsBlock) {
  const LinearResult free = RunLinear({.ranks = 2, .microbatches = 7}, Directory());
  const LinearResult blocking =
      RunLinear({.ranks = 2, .microbatches = 7}, Directory(), {.local = {.rendezvous = true}});
  ASSERT_TRUE(blocking.status.ok()) << blocking.status;
  EXPECT_EQ(free.parameters, blocking.parameters);
  const LinearResult replicas =
      RunLinear({.ranks = 2, .microbatches = 7, .replicas = 3}, Directory(), {.local = {.rendezvous = true}});
  EXPECT_TRUE(replicas.status.ok()) << replicas.status;
}

TEST(Executor, EvaluationLeavesTheTrainingAsItWas) {
  const LinearResult plain = RunLinear({.ranks = 2}, Directory());
  const LinearResult evaluated = RunLinear({.ranks = 2}, Directory(), {.evaluate = true});
  ASSERT_TRUE(evaluated.status.ok()) << evaluated.status;
  EXPECT_EQ(plain.losses, evaluated.losses);
  EXPECT_EQ(plain.parameters, evaluated.parameters);
}

// The second step and all after it allocate nothing: checked where a rank's own thread runs it.
TEST(Executor, AStepAllocatesNothing) {
  for (const LinearShape& shape :
       {LinearShape{.ranks = 1}, LinearShape{.ranks = 2}, LinearShape{.ranks = 2, .replicas = 2}}) {
    testing::WriteLinearPlan(Directory(), shape);
    const int ranks = shape.ranks * shape.replicas;
    LocalHub hub(ranks, {.replicas = shape.replicas});
    std::vector<LinearRank> all(ranks);
    std::vector<long> counts(ranks, -1);
    auto run = [&](int r) {
      const ExecutorOptions options{.replica = r / shape.ranks, .trace = true};
      ASSERT_TRUE(all[r].Load(Directory(), testing::LinearPlan(shape, r % shape.ranks), hub, options).ok());
      const ParameterScalars rates[2] = {};
      const std::vector<StepScalars> scalars = testing::Scalars(shape, 0, rates);
      const StepData data{all[r].inputs, {}};
      for (int step = 0; step < 4; ++step) {
        if (step == 1) counting = true;
        ASSERT_TRUE(all[r].executor->Run(StepKind::kTrain, scalars, data).ok());
      }
      counting = false;
      counts[r] = allocations;
    };
    std::vector<std::thread> threads;
    for (int r = 0; r < ranks; ++r) threads.emplace_back(run, r);
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(counts, std::vector<long>(ranks, 0));
  }
}

TEST(Executor, ATimeoutNamesRankStageActionMicrobatchAndStep) {
  const LinearShape shape{.ranks = 2};
  testing::WriteLinearPlan(Directory(), shape);
  LocalHub hub(2);
  LinearRank rank;  // rank 1 alone: nobody sends
  ASSERT_TRUE(
      rank.Load(Directory(), testing::LinearPlan(shape, 1), hub, {.timeout = absl::Milliseconds(1)}).ok());
  std::vector<StepScalars> scalars = testing::Scalars(shape, 6, nullptr);
  const absl::Status status = rank.executor->Run(StepKind::kTrain, scalars, {rank.inputs, {}}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr("rank 1, stage 1, action 1RECV_F0, microbatch 0, step 7"), HasSubstr("rank 0")));
}

TEST(Executor, AMissingReplicaIsNamed) {
  const LinearShape shape{.ranks = 1, .replicas = 2};
  testing::WriteLinearPlan(Directory(), shape);
  LocalHub hub(2, {.replicas = 2});
  LinearRank rank;  // replica 1 alone
  const ExecutorOptions options{.replica = 1, .timeout = absl::Milliseconds(1)};
  ASSERT_TRUE(rank.Load(Directory(), testing::LinearPlan(shape, 0), hub, options).ok());
  std::vector<StepScalars> scalars = testing::Scalars(shape, 6, nullptr);
  const absl::Status status = rank.executor->Run(StepKind::kTrain, scalars, {rank.inputs, {}}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("replica 1, rank 0, stage 1, action 1REDUCE_GRAD, step 7"),
                    HasSubstr("for the gradients of all replicas (--timeout)")));
}

TEST(Executor, AFailingReplicaEndsTheOthers) {
  const LinearResult result =
      RunLinear({.ranks = 2, .replicas = 2}, Directory(), {.disturb = [](LinearRank& rank, int) {
                  if (rank.replica == 1) rank.transport->Abort(absl::InternalError("gone"));
                }});
  EXPECT_EQ(result.status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(result.status.message()), HasSubstr("gone"));
}

TEST(Executor, AFailingRankEndsTheOthers) {
  const LinearResult result =
      RunLinear({.ranks = 2}, Directory(), {.edit = [](plan::RankPlan& p) {
                  if (p.rank() == 1) p.mutable_programs(0)->mutable_instructions(0)->set_op("NoSuchOp");
                }});
  EXPECT_FALSE(result.status.ok());
  EXPECT_THAT(std::string(result.status.message()), AllOf(HasSubstr("NoSuchOp"), HasSubstr("'y'")));
}

TEST(Executor, ANonFiniteLossStopsBeforeTheUpdate) {
  for (int ranks : {1, 2}) {
    const LinearShape shape{.ranks = ranks};
    const LinearResult result =
        RunLinear(shape, Directory(),
                  {.steps = 1, .executor = {.check_finite = true}, .disturb = [](LinearRank& rank, int) {
                     // Microbatch 2 of x: the product with W0, which has both signs, is NaN.
                     if (rank.executor->rank_plan().rank() == 0) {
                       for (float& value : rank.memory[2]) value = std::numeric_limits<float>::infinity();
                     }
                   }});
    ASSERT_TRUE(result.status.ok()) << result.status;
    EXPECT_TRUE(result.last[0].stopped && result.last[ranks - 1].stopped);
    EXPECT_EQ(result.parameters, testing::LinearParameters(shape)) << "no update";
    const NonFinite& first = result.last[0].first;
    EXPECT_TRUE(first.found && first.origin);
    EXPECT_EQ(result.nodes[0], "h");
    EXPECT_EQ(first.microbatch, 2);
    EXPECT_EQ(first.stage, 0);
  }
}

TEST(Executor, TheTraceShowsEveryActionInOrder) {
  const LinearShape shape{.ranks = 1};
  testing::WriteLinearPlan(Directory(), shape);
  LocalHub hub(1);
  LinearRank rank;
  ASSERT_TRUE(
      rank.Load(Directory(), testing::LinearPlan(shape, 0), hub, {.profile = true, .trace = true}).ok());
  const ParameterScalars rates[2] = {};
  const std::vector<StepScalars> scalars = testing::Scalars(shape, 0, rates);
  ASSERT_TRUE(rank.executor->Run(StepKind::kTrain, scalars, {rank.inputs, {}}).ok());
  const auto trace = rank.executor->trace();
  ASSERT_EQ(static_cast<int>(trace.size()), rank.executor->rank_plan().train_size());
  for (size_t i = 0; i < trace.size(); ++i) {
    EXPECT_EQ(trace[i].action, static_cast<int>(i));
    EXPECT_LE(trace[i].begin, trace[i].end);
    if (i > 0) {
      EXPECT_LE(trace[i - 1].end, trace[i].begin);
    }
  }
  const ProfileOfRank profile = rank.executor->profile();
  EXPECT_GT(profile.action_seconds, 0);
  for (const InstructionTime& time : profile.instructions) {
    const bool once = time.kind == plan::NORM || time.kind == plan::UPDATE;
    EXPECT_EQ(time.runs, once ? 1 : shape.microbatches) << time.node;
  }
}

TEST(RunTimes, AreOfTheMiddleHalfOfTheLatestRuns) {
  RunTimes times;
  EXPECT_EQ(times.Typical(), 0);
  times.Add(1000);
  EXPECT_EQ(times.Typical(), 1000);
  times.Forget();
  EXPECT_EQ(times.Typical(), 0);
  for (double seconds : {2, 4, 1, 8, 3, 100, 0, 5}) times.Add(seconds);
  EXPECT_DOUBLE_EQ(times.Typical(), (2 + 3 + 4 + 5) / 4.0) << "0 1 | 2 3 4 5 | 8 100";
  EXPECT_EQ(times.runs(), 9);
  for (int k = 0; k < 256; ++k) times.Add(7);
  EXPECT_EQ(times.Typical(), 7);
}

}  // namespace
}  // namespace pipec
