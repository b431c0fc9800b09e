// What VerifyRankPlan promises of plans with several replicas, broken once each.
#include <functional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/plan/manifest.h"
#include "runtime/plan/verify.h"
#include "tests/unit/support/linear_plan.h"

namespace pipec {
namespace {

using plan::RankPlan;
using ::testing::HasSubstr;
using testing::LinearPlan;

int SumOf(const RankPlan& p) {
  for (int i = 0; i < p.train_size(); ++i) {
    if (p.train(i).kind() == plan::REDUCE_GRAD) return i;
  }
  return -1;
}

int Find(const RankPlan& p, plan::ActionKind kind) {
  for (int i = 0; i < p.train_size(); ++i) {
    if (p.train(i).kind() == kind) return i;
  }
  return -1;
}

TEST(VerifyReplicas, TakesSoundPlans) {
  for (int ranks : {1, 2}) {
    for (int r = 0; r < ranks; ++r) {
      const absl::Status status = VerifyRankPlan(LinearPlan({.ranks = ranks, .replicas = 3}, r));
      EXPECT_TRUE(status.ok()) << status;
    }
  }
}

TEST(VerifyReplicas, RefusesEveryBrokenPromise) {
  struct Edit {
    const char* what;
    std::function<void(RankPlan&)> make;
    const char* message;
  };
  const Edit edits[] = {
      {"one replica", [](RankPlan& p) { p.set_replicas(1); }, "sums over replicas that it cannot have"},
      {"too many", [](RankPlan& p) { p.set_replicas(1u << 31); }, "replicas out of range"},
      {"inference", [](RankPlan& p) { p.set_training(false); }, "which only train"},
      {"rounds", [](RankPlan& p) { p.set_asynchronous(true); }, "with a flush"},
      {"no tensor", [](RankPlan& p) { p.mutable_train(SumOf(p))->clear_sums(); }, "or lacks them"},
      {"sums of another action", [](RankPlan& p) { p.mutable_train(0)->add_sums(0); }, "that it cannot have"},
      {"tensor", [](RankPlan& p) { p.mutable_train(SumOf(p))->set_sums(0, 999); }, "sum out of range"},
      {"type", [](RankPlan& p) { p.mutable_tensors(p.train(SumOf(p)).sums(0))->set_dtype(6); },
       "no float32 or float64"},
      {"constant", [](RankPlan& p) { p.mutable_train(SumOf(p))->add_sums(p.constants(0).tensor()); },
       "no float32 or float64"},
      {"slots", [](RankPlan& p) { p.mutable_train(SumOf(p))->add_sums(p.messages(0).tensors(0)); },
       "in one place"},
      {"the gradient", [](RankPlan& p) { p.mutable_train(SumOf(p))->set_sums(0, p.gradient_norm()); },
       "'gW1' is not added up"},
      {"the loss", [](RankPlan& p) { p.mutable_train(SumOf(p))->set_sums(1, p.gradient_norm()); },
       "'loss_sum' is not added up"},
      {"the weight", [](RankPlan& p) { p.mutable_train(SumOf(p))->set_sums(2, p.gradient_norm()); },
       "'loss_weight' is not added up"},
      {"a tensor twice", [](RankPlan& p) { p.mutable_train(SumOf(p))->add_sums(p.loss_sum()); },
       "added up twice"},
      {"twice", [](RankPlan& p) { *p.add_train() = p.train(SumOf(p)); }, "twice"},
      {"lost", [](RankPlan& p) { p.mutable_train()->DeleteSubrange(SumOf(p), 1); }, "is not added up"},
      {"before the last gradient",
       [](RankPlan& p) { p.mutable_train()->SwapElements(SumOf(p), SumOf(p) - 1); },
       "before the last gradient"},
      {"behind the norms",
       [](RankPlan& p) { p.mutable_train()->SwapElements(SumOf(p), Find(p, plan::NORM)); },
       "after what needs"},
      {"stage", [](RankPlan& p) { p.mutable_train(SumOf(p))->set_stage(0); }, "not on this rank"},
      {"microbatch", [](RankPlan& p) { p.mutable_train(SumOf(p))->set_microbatch(0); },
       "microbatch out of range"},
      {"program", [](RankPlan& p) { p.mutable_train(SumOf(p))->set_program(0); },
       "another stage's or kind's"},
      {"message", [](RankPlan& p) { p.mutable_train(SumOf(p))->add_messages(0); }, "number of messages"},
      {"evaluation", [](RankPlan& p) { *p.add_eval() = p.train(SumOf(p)); }, "forward only"},
  };
  for (const Edit& edit : edits) {
    RankPlan p = LinearPlan({.ranks = 2, .replicas = 2}, 1);
    edit.make(p);
    EXPECT_THAT(std::string(VerifyRankPlan(p).message()), HasSubstr(edit.message)) << edit.what;
  }
}

TEST(VerifyReplicas, TheManifestSaysHowManyRanksThereAre) {
  Manifest manifest;
  manifest.mode = "train";
  manifest.ranks = 256;
  manifest.replicas = 256;
  EXPECT_TRUE(ParseManifest(ToJson(manifest)).ok()) << ParseManifest(ToJson(manifest)).status();
  manifest.replicas = 257;
  EXPECT_THAT(std::string(ParseManifest(ToJson(manifest)).status().message()), HasSubstr("above 65536"));
}

}  // namespace
}  // namespace pipec
