// What VerifyRankPlan and VerifyPlan promise of plans whose updates go ahead of the norms, broken once each.
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

// The hand-built plan on two ranks: the first validates behind its first forward pass and what it sends, the second
// behind the receive. Parameters have two places.
RankPlan Late(int rank) {
  RankPlan p = LinearPlan({.ranks = 2, .microbatches = 3}, rank);
  p.set_validates_late(true);
  p.set_validate_at(rank == 0 ? 2 : 1);
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
  return p;
}

plan::Program* ProgramOf(RankPlan& p, plan::ActionKind kind) {
  for (plan::Program& program : *p.mutable_programs()) {
    if (program.kind() == kind) return &program;
  }
  return nullptr;
}

TEST(VerifyLate, TakesASoundPlan) {
  const RankPlan first = Late(0), second = Late(1);
  ASSERT_EQ(first.train(1).kind(), plan::SEND_F);
  EXPECT_TRUE(VerifyRankPlan(first).ok()) << VerifyRankPlan(first);
  EXPECT_TRUE(VerifyRankPlan(second).ok()) << VerifyRankPlan(second);
  const RankPlan* ranks[] = {&first, &second};
  EXPECT_TRUE(VerifyPlan(ranks).ok()) << VerifyPlan(ranks);
}

TEST(VerifyLate, RefusesEveryBrokenPromise) {
  struct Edit {
    const char* what;
    int rank;
    std::function<void(RankPlan&)> make;
    const char* message;
  };
  const Edit edits[] = {
      {"inference", 0, [](RankPlan& p) { p.set_training(false); }, "do not fit each other"},
      {"asynchronous", 0, [](RankPlan& p) { p.set_asynchronous(true); }, "do not fit each other"},
      {"a place in a plan that waits", 0, [](RankPlan& p) { p.set_validates_late(false); },
       "do not fit each other"},
      {"a place behind the end", 0, [](RankPlan& p) { p.set_validate_at(p.train_size() + 1); },
       "do not fit each other"},
      {"versions in a plan that waits", 0,
       [](RankPlan& p) { p.set_validates_late(false), p.set_validate_at(0); }, "rule"},
      {"three places", 0, [](RankPlan& p) { p.mutable_slot_classes(1)->set_slots(3); },
       "one slot a weight version"},
      {"steps", 0, [](RankPlan& p) { p.mutable_slot_classes(1)->set_rule(plan::STEP); }, "rule"},
      {"a backward action in front", 0, [](RankPlan& p) { p.set_validate_at(p.train_size() - 2); },
       "cannot run twice"},
      {"the sum of losses in front", 1, [](RankPlan& p) { p.set_validate_at(2); }, "writes what stays"},
      {"an update in one place", 0,
       [](RankPlan& p) {
         for (plan::Buffer& buffer : *p.mutable_buffers()) {
           if (buffer.kind() == plan::PARAMETER)
             buffer.set_slot_class(-1), buffer.mutable_offsets()->RemoveLast();
         }
       },
       "may have to read again"},
      {"an update that spoils its gradient", 0,
       [](RankPlan& p) {
         plan::Program* update = ProgramOf(p, plan::UPDATE);
         update->mutable_instructions(0)->set_outputs(2, update->instructions(1).inputs(1));
       },
       "may have to read again"},
      {"no scale", 0,
       [](RankPlan& p) { ProgramOf(p, plan::UPDATE)->mutable_instructions()->DeleteSubrange(0, 1); },
       "first update has the scale"},
      {"two scales", 0,
       [](RankPlan& p) {
         plan::Program* update = ProgramOf(p, plan::UPDATE);
         *update->add_instructions() = plan::Instruction(update->instructions(0));
       },
       "first update has the scale"},
      {"a scale that is none", 0,
       [](RankPlan& p) { ProgramOf(p, plan::UPDATE)->mutable_instructions(0)->set_op("Sum"); },
       "has no scale"},
      {"no norm", 0,
       [](RankPlan& p) { p.mutable_train()->SwapElements(p.train_size() - 2, p.train_size() - 3); }, "end"},
  };
  for (const Edit& edit : edits) {
    RankPlan p = Late(edit.rank);
    edit.make(p);
    EXPECT_THAT(std::string(VerifyRankPlan(p).message()), HasSubstr(edit.message)) << edit.what;
  }
}

TEST(VerifyLate, RefusesRanksThatDoNotFit) {
  RankPlan first = Late(0), second = Late(1);
  const RankPlan* ranks[] = {&first, &second};
  second.set_validate_at(0);
  EXPECT_THAT(std::string(VerifyPlan(ranks).message()), HasSubstr("on its way from stage 0 to 1"));
  second = LinearPlan({.ranks = 2, .microbatches = 3}, 1);
  EXPECT_THAT(std::string(VerifyPlan(ranks).message()), HasSubstr("another plan"));
}

}  // namespace
}  // namespace pipec
