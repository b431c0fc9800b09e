#include <gmock/gmock.h>

#include "compiler/ir/once_a_step.h"
#include "small_models.h"

namespace pipec {
namespace {

std::string Tail(const Module& module, int rank) {
  std::string text;
  for (const Action& action : module.schedule.ranks[rank]) {
    if (action.microbatch < 0) absl::StrAppend(&text, text.empty() ? "" : " ", ToString(action));
  }
  return text;
}

int Count(const Schedule& schedule, ActionKind kind) {
  int count = 0;
  for (const auto& actions : schedule.ranks) {
    for (const Action& action : actions) count += action.kind == kind;
  }
  return count;
}

TEST(OrderActions, EndsTheStepWithWhatHappensOnce) {
  auto module = Tied();
  PassContext context = Context(4, 8);
  context.options.cut = {"y0", "y1", "y2"};
  ASSERT_EQ(Compile(*module, context, Level::kScheduled), absl::OkStatus());
  EXPECT_EQ(Tail(*module, 0), "REDUCE_TIED NORM 0UPDATE");
  EXPECT_EQ(Tail(*module, 1), "NORM 1UPDATE");
  EXPECT_EQ(Tail(*module, 3), "REDUCE_TIED NORM 3UPDATE");
  EXPECT_EQ(Count(module->schedule, ActionKind::kSendF), 3 * 8);
  EXPECT_EQ(Count(module->schedule, ActionKind::kRecvB), 3 * 8);
  EXPECT_EQ(Count(module->eval_schedule, ActionKind::kSendF), 3 * 8);
  EXPECT_EQ(Count(module->eval_schedule, ActionKind::kSendB), 0);
  EXPECT_GT(module->simulation.makespan, 0);
}

// Two replicas: each stage adds up its gradients behind the last of them; the loss goes with the last stage's.
TEST(OrderActions, ReplicasAddUp) {
  auto module = Tied();
  PassContext context = Context(2, 4);
  context.options.cut = {"y1"};
  const double alone = [&] {
    auto one = Tied();
    EXPECT_EQ(Compile(*one, context, Level::kPlanned), absl::OkStatus());
    return one->simulation.step_seconds;
  }();
  context.options.replicas = 2;
  ASSERT_EQ(Compile(*module, context, Level::kPlanned), absl::OkStatus());
  EXPECT_EQ(Tail(*module, 0), "0REDUCE_GRAD REDUCE_TIED NORM 0UPDATE");
  EXPECT_EQ(Tail(*module, 1), "1REDUCE_GRAD REDUCE_TIED NORM 1UPDATE");
  std::vector<std::string> names;
  for (const Value* value : SummedOverReplicas(*module, 1)) names.push_back(value->name());
  EXPECT_THAT(names, ::testing::Contains("shared.grad.1.sum"));
  EXPECT_EQ(names.size(), 2u + 1 + (module->training.loss_weight != nullptr));
  // Rank 0 is the last to have its gradients, so the sum of what it has comes on top of the step.
  double bytes = 0;
  for (const Value* value : SummedOverReplicas(*module, 0)) bytes += value->type.bytes();
  EXPECT_NEAR(module->simulation.step_seconds - alone, 2 * (1e-6 + bytes / 2 / 1e9), 1e-12);
}

TEST(OrderActions, ASumThatIsMissingIsSeen) {
  PassContext context = Context(2, 4);
  context.options.replicas = 2;
  auto module = Chain(4);
  ASSERT_EQ(Compile(*module, context, Level::kScheduled), absl::OkStatus());
  std::erase_if(module->schedule.ranks[1], [](const Action& a) { return a.kind == ActionKind::kReduceGrad; });
  EXPECT_THAT(std::string(Verify(*module).message()), ::testing::HasSubstr("not with 1REDUCE_GRAD NORM"));
}

// Nothing in the first stage learns, so no gradient is sent to it, on either side.
TEST(OrderActions, NoGradientMessageWhereNothingLearns) {
  auto module = Chain(2);
  PassContext context = Context(2, 4);
  context.options.freeze_regex = "w0";
  context.options.cut = {"y0"};
  ASSERT_EQ(Compile(*module, context, Level::kPlanned), absl::OkStatus());
  EXPECT_EQ(Count(module->schedule, ActionKind::kSendF), 4);
  EXPECT_EQ(Count(module->schedule, ActionKind::kSendB), 0);
  EXPECT_EQ(Count(module->schedule, ActionKind::kRecvB), 0);
}

TEST(OrderActions, AllSchedulesAtAllSizes) {
  for (const ScheduleInfo& info : AllSchedules()) {
    for (int ranks = 1; ranks <= 4; ++ranks) {
      for (int microbatches = 1; microbatches <= 8; ++microbatches) {
        auto module = Chain(8, info.forward_only ? Mode::kInfer : Mode::kTrain);
        const PassContext context = Context(ranks, microbatches, std::string(info.name));
        const bool takes = info.generate({ranks, info.default_virtual_stages, microbatches}).ok();
        const absl::Status status = Compile(*module, context, Level::kPlanned);
        EXPECT_EQ(status.ok(), takes)
            << info.name << " P=" << ranks << " M=" << microbatches << ": " << status;
        if (!takes) {
          EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
        }
      }
    }
  }
}

TEST(VerifyScheduled, CatchesMutants) {
  auto module = Tied();
  PassContext context = Context(4, 3);
  context.options.cut = {"y0", "y1", "y2"};
  ASSERT_EQ(Compile(*module, context, Level::kScheduled), absl::OkStatus());
  const Schedule good = module->schedule, good_eval = module->eval_schedule;
  auto restored = [&]() -> Module& {
    module->schedule = good;
    module->eval_schedule = good_eval;
    return *module;
  };
  for (int r = 0; r < 4; ++r) {
    for (int k = 0; k < good.ranks[r].size(); ++k) {
      auto& dropped = restored().schedule.ranks[r];
      dropped.erase(dropped.begin() + k);
      EXPECT_FALSE(VerifyScheduled(*module).ok()) << "dropped " << r << " " << k;
      auto& doubled = restored().schedule.ranks[r];
      doubled.insert(doubled.begin() + k, doubled[k]);
      EXPECT_FALSE(VerifyScheduled(*module).ok()) << "doubled " << r << " " << k;
    }
    for (int k = 0; k < good_eval.ranks[r].size(); ++k) {
      auto& dropped = restored().eval_schedule.ranks[r];
      dropped.erase(dropped.begin() + k);
      EXPECT_FALSE(VerifyScheduled(*module).ok()) << "evaluation, dropped " << r << " " << k;
    }
  }
  auto& swapped = restored().schedule.ranks[0];
  std::swap(swapped[swapped.size() - 1], swapped[swapped.size() - 2]);
  EXPECT_FALSE(VerifyScheduled(*module).ok());
  restored().schedule.rank_of_stage = {1, 0, 2, 3};
  EXPECT_FALSE(VerifyScheduled(*module).ok());
}

}  // namespace
}  // namespace pipec
