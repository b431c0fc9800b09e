// How the losses of the microbatches make that of the batch: means, sums, and whose padding weighs in.
#include <string>

#include "absl/strings/str_join.h"
#include "build_training.h"
#include "gmock/gmock.h"

namespace pipec {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr int kMicrobatches = 8;
const Attributes::Map kScalar = {{"keepdims", int64_t{0}}};

// y = x * p, 4 samples of 3 elements; loss(m, y) is the output.
class OwnLoss {
 public:
  template <typename MakeLoss>
  explicit OwnLoss(MakeLoss loss) {
    m_.module().microbatch_size = 4;
    Value* y = m_.Op("Mul", {m_.Input({4, 3}), m_.Parameter({3})});
    y->batch_axis = 0;
    m_.graph().outputs = {loss(m_, y)};
    CompileOptions options;
    options.microbatches = kMicrobatches;
    status_ = BuildTraining(m_.module(), options);
  }
  const absl::Status& status() const { return status_; }
  const Training& training() { return m_.module().training; }
  double weight() { return training().gradient_scales.at(0)->attributes.Float("weight"); }
  std::string notes() { return absl::StrJoin(m_.module().notes, "\n"); }

 private:
  SmallModel m_;
  absl::Status status_;
};

Value* Sum(SmallModel& m, Value* y) { return m.Op("ReduceSum", {y}, kScalar); }
Value* Mean(SmallModel& m, Value* y) { return m.Op("ReduceMean", {y}, kScalar); }

TEST(MicrobatchLoss, ASumIsSummed) {
  OwnLoss sum([](SmallModel& m, Value* y) { return m.Op("Mul", {Sum(m, y), m.Constant({}, {0.5})}); });
  ASSERT_TRUE(sum.status().ok()) << sum.status();
  EXPECT_TRUE(sum.training().loss_is_sum);
  EXPECT_EQ(sum.weight(), 1);
  EXPECT_THAT(sum.notes(), HasSubstr("is a sum over samples"));
  OwnLoss rows([](SmallModel& m, Value* y) {
    Value* row = m.Op("ReduceMean", {y, m.Ints({1})}, kScalar);
    row->batch_axis = 0;
    return Sum(m, row);
  });
  EXPECT_TRUE(rows.training().loss_is_sum);
}

TEST(MicrobatchLoss, AMeanCountsOncePerMicrobatch) {
  OwnLoss mean([](SmallModel& m, Value* y) { return m.Op("Add", {Mean(m, y), m.Constant({}, {1})}); });
  ASSERT_TRUE(mean.status().ok()) << mean.status();
  EXPECT_FALSE(mean.training().loss_is_sum);
  EXPECT_EQ(mean.weight(), kMicrobatches);
  EXPECT_THAT(mean.notes(), Not(HasSubstr("is a sum over samples")));
}

// What exporters make of a mean: the sum over a count that is a constant by now. A number that only happens to
// be as large is none, unless the batch itself is written into the model.
TEST(MicrobatchLoss, ASumOverItsCountIsAMean) {
  for (const auto& [divisor, is_sum] : {std::pair(4.0, false), {12.0, false}, {5.0, true}}) {
    for (const auto& [counts, written] : {std::pair(true, false), {false, true}, {false, false}}) {
      OwnLoss loss([divisor = divisor, counts = counts, written = written](SmallModel& m, Value* y) {
        Value* number = m.Constant({}, {divisor});
        number->counts_samples = counts;
        m.module().batch_is_written = written;
        return m.Op("Div", {m.Op("Neg", {Sum(m, y)}), number});
      });
      EXPECT_EQ(loss.training().loss_is_sum, is_sum || !(counts || written)) << divisor;
    }
  }
}

TEST(MicrobatchLoss, SumsAreNotMixedWithWhatIsNone) {
  const OwnLoss fixed([](SmallModel& m, Value* y) { return m.Op("Add", {Sum(m, y), m.Constant({}, {1})}); });
  EXPECT_THAT(fixed.status().message(), HasSubstr("node Add (Add) puts a sum over samples together"));
  const OwnLoss both([](SmallModel& m, Value* y) { return m.Op("Sub", {Sum(m, y), Mean(m, y)}); });
  EXPECT_THAT(both.status().message(), HasSubstr("node Sub (Sub) puts a sum over samples together"));
}

TEST(MicrobatchLoss, WholeMicrobatchesUnlessAHelperLeavesPaddingOut) {
  OwnLoss own(Sum);
  EXPECT_TRUE(own.training().loss_of_whole_microbatches);
  EXPECT_EQ(own.training().loss_sum->producer()->attributes.Int("samples"), 4);
  const auto helper = [](SmallModel& m, Value* y) {
    return m.Ops("NegativeLogLikelihood", {y, m.Ints({0, 1, 2, 0})},
                 {{"axis", int64_t{1}}, {"reduction", std::string("sum")}}, kPipecDomain, 2)[0];
  };
  OwnLoss sum(helper);
  EXPECT_TRUE(sum.training().loss_is_sum);
  EXPECT_FALSE(sum.training().loss_of_whole_microbatches);
  EXPECT_FALSE(sum.training().loss_sum->producer()->attributes.Has("samples"));
  OwnLoss scaled([&](SmallModel& m, Value* y) { return m.Op("Mul", {helper(m, y), m.Constant({}, {2})}); });
  EXPECT_TRUE(scaled.training().loss_is_sum);
  EXPECT_TRUE(scaled.training().loss_of_whole_microbatches);
}

TEST(MicrobatchLoss, LabelsOfAMergedAxisAreFedBySample) {
  for (const std::string loss : {"cross-entropy", "mse"}) {
    SmallModel m;
    m.module().microbatch_size = 2;
    Value* logits = m.Op("MatMul", {m.Input({6, 3}), m.Parameter({3, 5})});
    logits->batch_axis = 0;
    m.graph().outputs = {logits};
    CompileOptions options;
    options.loss = loss;
    ASSERT_TRUE(BuildTraining(m.module(), options).ok());
    const Value* labels = m.graph().FindValue("labels");
    EXPECT_EQ(labels->type.shape, (loss == "mse" ? Shape{2, 3, 5} : Shape{2, 3}));
    EXPECT_EQ(labels->batch_axis, 0);
    const Node* helper = m.module().training.loss_sum->producer()->input(1)->producer();
    EXPECT_EQ(helper->input(1)->type.shape, (loss == "mse" ? Shape{6, 5} : Shape{6}));
    EXPECT_EQ(helper->input(1)->producer()->input(0), labels);
    EXPECT_EQ(helper->attributes.Int("samples"), 2);
    EXPECT_EQ(helper->attributes.Int("batch_axis", -1), 0);
  }
}

}  // namespace
}  // namespace pipec
