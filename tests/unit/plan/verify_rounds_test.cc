// What VerifyRankPlan promises of plans whose steps overlap, broken once each.
#include <functional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/plan/verify.h"
#include "tests/unit/support/linear_plan.h"

namespace pipec {
namespace {

using plan::RankPlan;
using ::testing::HasSubstr;
using testing::LinearPlan;

constexpr int kUpdate = 1;  // where it stands in the list

// The hand-built plan on one rank, with weights one update old: a step's update stands in front of the next step.
RankPlan Rounds() {
  RankPlan p = LinearPlan({.ranks = 1, .microbatches = 2}, 0);
  p.set_asynchronous(true);
  p.set_weight_delay(1);
  p.mutable_slot_classes(0)->set_rule(plan::CYCLE);
  p.mutable_slot_classes(0)->clear_train();
  plan::SlotClass* versions = p.add_slot_classes();
  versions->set_slots(2);
  versions->set_rule(plan::VERSION);
  for (plan::Buffer& buffer : *p.mutable_buffers()) {
    if (buffer.kind() != plan::PARAMETER) continue;
    buffer.set_slot_class(1);
    buffer.clear_offsets();
    for (int slot = 0; slot < 2; ++slot) {
      buffer.add_offsets(p.arena_bytes());
      p.set_arena_bytes(p.arena_bytes() + (buffer.bytes() + 63) / 64 * 64);
    }
  }
  std::vector<plan::Action> once, others;
  for (const plan::Action& action : p.train()) (action.microbatch() < 0 ? once : others).push_back(action);
  p.clear_train();
  for (plan::Action& action : once) {
    action.set_lag(1);
    *p.add_train() = action;
  }
  for (const plan::Action& action : others) *p.add_train() = action;
  return p;
}

TEST(VerifyRounds, TakesASoundPlan) {
  const RankPlan p = Rounds();
  ASSERT_EQ(p.train(kUpdate).kind(), plan::UPDATE);
  const absl::Status status = VerifyRankPlan(p);
  EXPECT_TRUE(status.ok()) << status;
  const RankPlan* pointer = &p;
  EXPECT_TRUE(VerifyPlan({&pointer, 1}).ok());
}

TEST(VerifyRounds, RefusesEveryBrokenPromise) {
  struct Edit {
    const char* what;
    std::function<void(RankPlan&)> make;
    const char* message;
  };
  const Edit edits[] = {
      {"synchronous", [](RankPlan& p) { p.set_asynchronous(false); }, "do not fit each other"},
      {"inference", [](RankPlan& p) { p.set_training(false); }, "do not fit each other"},
      {"a delay of many", [](RankPlan& p) { p.set_weight_delay(2); }, "do not fit each other"},
      {"fewer versions", [](RankPlan& p) { p.set_weight_delay(0); }, "one slot a weight version"},
      {"a table", [](RankPlan& p) { p.mutable_slot_classes(0)->set_rule(plan::TABLE); }, "rule"},
      {"no rule", [](RankPlan& p) { p.mutable_slot_classes(0)->set_rule(static_cast<plan::SlotRule>(9)); },
       "rule"},
      {"entries of a table", [](RankPlan& p) { p.mutable_slot_classes(0)->add_train(0); }, "entries"},
      {"entries of versions", [](RankPlan& p) { p.mutable_slot_classes(1)->add_eval(0); }, "entries"},
      {"a lag for ever", [](RankPlan& p) { p.mutable_train(2)->set_lag(1u << 30); }, "lag"},
      {"an update before its gradients", [](RankPlan& p) { p.mutable_train(kUpdate)->set_lag(0); },
       "last gradient"},
      {"an update that comes too late", [](RankPlan& p) { p.mutable_train(kUpdate)->set_lag(3); }, "version"},
      {"a forward pass out of turn", [](RankPlan& p) { p.mutable_train(2)->set_lag(1); }, "before its F"},
      {"a parameter written forward",
       [](RankPlan& p) {
         for (plan::Program& program : *p.mutable_programs()) {
           if (program.kind() == plan::F)
             program.mutable_instructions(0)->set_outputs(0, program.instructions(0).inputs(1));
         }
       },
       "not its to write"},
      {"a parameter read after its update",
       [](RankPlan& p) {
         for (plan::Program& program : *p.mutable_programs()) {
           if (program.kind() == plan::UPDATE)
             *program.add_instructions() = program.instructions(program.instructions_size() - 1);
         }
       },
       "after its update"},
  };
  for (const Edit& edit : edits) {
    RankPlan p = Rounds();
    edit.make(p);
    EXPECT_THAT(std::string(VerifyRankPlan(p).message()), HasSubstr(edit.message)) << edit.what;
  }
}

TEST(VerifyRounds, ALagIsForRoundsOnly) {
  RankPlan p = LinearPlan({.ranks = 1}, 0);
  p.mutable_train(p.train_size() - 1)->set_lag(1);
  EXPECT_THAT(std::string(VerifyRankPlan(p).message()), HasSubstr("lag"));
}

}  // namespace
}  // namespace pipec
