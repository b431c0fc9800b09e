// Learning rates and hyperparameters. The schedules' figures are PyTorch 2's, printed by
// torch.optim.lr_scheduler.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/driver/batches.h"
#include "runtime/driver/hyperparameters.h"
#include "runtime/driver/lr_schedule.h"

namespace pipec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<double> Factors(LrSchedule schedule, int64_t steps, int64_t warmup = 0) {
  std::vector<double> factors;
  for (int64_t step = 0; step < steps; ++step) factors.push_back(LrFactor(schedule, step, steps, warmup));
  return factors;
}

void ExpectNear(const std::vector<double>& got, const std::vector<double>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-9) << "step " << i;
}

TEST(LrSchedule, FollowsPyTorch) {
  EXPECT_EQ(Factors(LrSchedule::kConstant, 3), (std::vector<double>{1, 1, 1}));
  ExpectNear(Factors(LrSchedule::kLinear, 4), {1, 0.75, 0.5, 0.25});
  // CosineAnnealingLR(T_max=4).
  ExpectNear(Factors(LrSchedule::kCosine, 4), {1, 0.8535533905932737, 0.5, 0.14644660940672624});
  ExpectNear(Factors(LrSchedule::kStep, 6), {1, 1, 0.1, 0.1, 0.01, 0.01});
  // OneCycleLR(max_lr=1, total_steps=10).
  ExpectNear(Factors(LrSchedule::kOneCycle, 10),
             {0.04, 0.52, 1.0, 0.9504846320134737, 0.8117456539497631, 0.6112620219362893,
              0.38874197806371076, 0.18825834605023698, 0.049519367986526286, 4e-06});
}

TEST(LrSchedule, WarmUpRisesToTheRate) {
  ExpectNear(Factors(LrSchedule::kConstant, 5, 4), {0.25, 0.5, 0.75, 1, 1});
  ExpectNear(Factors(LrSchedule::kLinear, 6, 2), {0.5, 1, 1, 0.75, 0.5, 0.25});
  EXPECT_EQ(Factors(LrSchedule::kCosine, 3, 8).size(), 3u) << "a warm-up longer than the run";
  for (double factor : Factors(LrSchedule::kOneCycle, 1)) EXPECT_LE(factor, 1);
  EXPECT_THAT(std::string(ParseLrSchedule("cosin").status().message()), HasSubstr("cosine"));
}

TEST(Hyperparameters, DefaultsArePyTorchs) {
  EXPECT_EQ(Describe(WithDefaults({}, "adamw"), "adamw"),
            "adamw: lr 0.001, weight decay 0.01, beta1 0.9, beta2 0.999, eps 1e-08");
  EXPECT_EQ(Describe(WithDefaults({}, "sgd"), "sgd"), "sgd: lr 0.001, weight decay 0");
  EXPECT_EQ(Describe(WithDefaults({}, "adagrad"), "adagrad"), "adagrad: lr 0.01, weight decay 0, eps 1e-10");
  Hyperparameters given;
  given.momentum = 0.5;
  EXPECT_EQ(Describe(WithDefaults(given, "nesterov"), "nesterov"),
            "nesterov: lr 0.001, weight decay 0, momentum 0.5");
}

TEST(Hyperparameters, TheLastMatchingExpressionHolds) {
  Hyperparameters h;
  for (const char* text : {"0.5", "bias=0.25", "^head=0.125"}) ASSERT_TRUE(AddSetting(text, &h.lr).ok());
  ASSERT_TRUE(AddSetting("a=b=2", &h.weight_decay).ok()) << "the last = separates";
  EXPECT_EQ(h.weight_decay.by_regex[0].first, "a=b");
  h.weight_decay.by_regex.clear();
  const auto rows = Resolve(h, {"w", "w.bias", "head.bias"});
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ((*rows)[0].lr, 0.5);
  EXPECT_EQ((*rows)[1].lr, 0.25);
  EXPECT_EQ((*rows)[2].lr, 0.125);
  for (const char* text : {"", "x", "-1", "w=", "w=-1", "nan", "inf", "(=1"})
    EXPECT_FALSE(AddSetting(text, &h.lr).ok()) << text;
  h.lr.by_regex = {{"(", 1}};
  EXPECT_THAT(std::string(Resolve(h, {"w"}).status().message()), HasSubstr("no regular expression"));
}

TEST(Batches, DropTheIncompleteLastAndPadInOrder) {
  const TrainingBatches batches(10, 4, false, 0);
  EXPECT_EQ(batches.steps_per_epoch(), 2);
  std::vector<int64_t> batch(4);
  batches.Fill(1, absl::MakeSpan(batch));
  EXPECT_THAT(batch, ElementsAre(4, 5, 6, 7));
  batches.Fill(2, absl::MakeSpan(batch));
  EXPECT_THAT(batch, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(FillInOrder(10, 2, absl::MakeSpan(batch)), 2);
  EXPECT_THAT(batch, ElementsAre(8, 9, -1, -1));
}

}  // namespace
}  // namespace pipec
