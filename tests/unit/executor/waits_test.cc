// Which messages are awaited before which action, on the hand-built plan: slots are reused every second
// microbatch.
#include "runtime/executor/waits.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/plan/verify.h"
#include "tests/unit/support/linear_plan.h"

namespace pipec {
namespace {

using ::testing::ElementsAre;
using testing::LinearPlan;
using testing::LinearShape;

// "0F2<0SEND_F0": before 0F2 the executor waits for 0SEND_F0.
std::vector<std::string> Waits(const plan::RankPlan& p) {
  const ListPlan list = PlanList(p, StepKind::kTrain);
  std::vector<std::string> waits;
  for (int i = 0; i < p.train_size(); ++i) {
    for (int exchange : list.actions[i].waits) {
      waits.push_back(ActionName(p, p.train(i)) + "<" +
                      ActionName(p, p.train(list.exchanges[exchange].action)));
    }
  }
  return waits;
}

TEST(Waits, ReceivesBeforeTheirReadersAndSendsBeforeTheirSlotIsWritten) {
  const LinearShape shape{.ranks = 2, .microbatches = 3};
  EXPECT_THAT(Waits(LinearPlan(shape, 0)), ElementsAre("0B0<0RECV_B0", "0F2<0SEND_F0", "0B1<0RECV_B1",
                                                       "0B2<0RECV_B2"));
  EXPECT_THAT(Waits(LinearPlan(shape, 1)), ElementsAre("1F0<1RECV_F0", "1F1<1RECV_F1", "1F2<1RECV_F2",
                                                       "1B2<1SEND_B0"));
}

// A sum is under way while stage 0 goes on, and awaited where it is used.
TEST(Waits, SumsBeforeTheirReaders) {
  const plan::RankPlan p = LinearPlan({.ranks = 1, .microbatches = 2, .replicas = 2}, 0);
  EXPECT_THAT(Waits(p), ::testing::UnorderedElementsAre("NORM<0REDUCE_GRAD", "NORM<1REDUCE_GRAD"));
}

// Bytes count, not buffers: a buffer laid over the sent one makes its writer wait.
TEST(Waits, BuffersThatShareBytesAreSeen) {
  plan::RankPlan p = LinearPlan({.ranks = 2, .microbatches = 3}, 0);
  int h = 0, gradient = 0;
  for (int i = 0; i < p.buffers_size(); ++i) {
    if (p.buffers(i).name() == "h") h = i;
    if (p.buffers(i).name() == "dW0") gradient = i;
  }
  p.mutable_buffers(gradient)->set_offsets(0, p.buffers(h).offsets(0));
  EXPECT_THAT(Waits(p), ::testing::Contains("0B0<0SEND_F0"));
}

TEST(Waits, InputsAreWrittenBeforeTheirFirstReaderAndOutputsReadAfterTheirLastWriter) {
  const plan::RankPlan p = LinearPlan({.ranks = 2, .microbatches = 3}, 1);
  const ListPlan train = PlanList(p, StepKind::kTrain), eval = PlanList(p, StepKind::kEval);
  for (int i = 0; i < p.train_size(); ++i) {
    EXPECT_EQ(train.actions[i].feeds.size(), p.train(i).kind() == plan::F ? 1u : 0u);
    EXPECT_TRUE(train.actions[i].deliveries.empty());
  }
  for (int i = 0; i < p.eval_size(); ++i) {
    EXPECT_EQ(eval.actions[i].deliveries.size(), p.eval(i).kind() == plan::F ? 1u : 0u);
  }
}

}  // namespace
}  // namespace pipec
