#include "runtime/driver/evaluate.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/base/counted.h"
#include "runtime/base/status.h"
#include "runtime/driver/batches.h"
#include "runtime/driver/eval_scalars.h"

namespace pipec {
namespace {

// Adds what a scalar says after each step.
template <typename T>
void Add(const std::optional<T>& value, std::optional<T>* sum) {
  if (value.has_value()) *sum = sum->value_or(0) + *value;
}

}  // namespace

void SetEvalScalars(const Manifest& manifest, uint64_t seed, int64_t step, int64_t valid,
                    std::vector<StepScalars>* scalars) {
  scalars->resize(manifest.microbatches);
  for (int m = 0; m < manifest.microbatches; ++m) {
    StepScalars& s = (*scalars)[m];
    s.seed = seed;
    s.step = step;
    s.microbatch = m;
    s.first_sample = m * manifest.microbatch_size;
    s.valid_samples = std::clamp<int64_t>(valid - s.first_sample, 0, manifest.microbatch_size);
    s.training = false;
  }
}

absl::StatusOr<EvaluationReport> Evaluate(Session& session, const DataSource& data, const RunOptions& options,
                                          int64_t step, RunObserver& observer) {
  // What replica 0 finds, whose running statistics are those that are kept.
  const int64_t batch = session.manifest().batch() / session.manifest().replicas, total = data.samples();
  if (total == 0) return absl::InvalidArgumentError("the evaluation data has no complete sample");
  std::vector<int64_t> samples(batch);
  std::vector<StepScalars> scalars;
  std::optional<double> loss_sum, loss_weight;
  std::optional<int64_t> correct, predictions;
  EvaluationReport report;
  report.step = step;
  const plan::RankPlan& rank_plan = session.executor(0).rank_plan();
  const int64_t whole_samples = session.manifest().microbatch_size;
  double counted = 0;  // microbatches that loss_sum holds, each of which counts 1
  const bool only_whole = rank_plan.loss_of_whole_microbatches();
  if (only_whole && total < whole_samples) {
    return absl::InvalidArgumentError(
        absl::StrCat("the model computes its loss itself, so evaluation needs whole microbatches: ",
                     Counted(total, "sample", "samples"), ", a microbatch has ", whole_samples));
  }
  if (only_whole && total % whole_samples != 0) {
    observer.OnNote(absl::StrCat("the model computes its loss itself, so the last ",
                                 Counted(total % whole_samples, "sample", "samples"),
                                 ", no whole microbatch of ", whole_samples,
                                 ", are left out of the evaluation's loss"));
  }
  for (int64_t at = 0; at < total; at += batch) {
    if (options.stop != nullptr && *options.stop)
      return absl::CancelledError("interrupted during evaluation");
    const int64_t valid = FillInOrder(total, at / batch, absl::MakeSpan(samples));
    SetEvalScalars(session.manifest(), options.seed, step, valid, &scalars);
    ASSIGN_OR_RETURN(const StepResult done, session.Run(StepKind::kEval, data, samples, scalars));
    (void)done;
    ASSIGN_OR_RETURN(const std::optional<double> sum, session.ReadScalar(&plan::RankPlan::loss_sum));
    ASSIGN_OR_RETURN(const std::optional<double> weight, session.ReadScalar(&plan::RankPlan::loss_weight));
    Add(sum, &loss_sum);
    Add(weight, &loss_weight);
    counted += static_cast<double>(valid / whole_samples);
    ASSIGN_OR_RETURN(const std::optional<int64_t> right, session.ReadCount(&plan::RankPlan::correct));
    ASSIGN_OR_RETURN(const std::optional<int64_t> made, session.ReadCount(&plan::RankPlan::predictions));
    Add(right, &correct);
    Add(made, &predictions);
    report.samples += valid;
    observer.OnProgress("evaluation", report.samples, total);
  }
  const bool is_sum = rank_plan.loss_is_sum();
  if (loss_sum.has_value()) report.loss = *loss_sum / loss_weight.value_or(is_sum ? 1 : counted);
  if (correct.has_value() && predictions.value_or(0) > 0) {
    report.accuracy = static_cast<double>(*correct) / static_cast<double>(*predictions);
  }
  return report;
}

}  // namespace pipec
