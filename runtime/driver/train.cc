#include "runtime/driver/train.h"

#include <chrono>
#include <cmath>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/status.h"
#include "runtime/driver/batches.h"
#include "runtime/driver/evaluate.h"
#include "runtime/driver/loss_scaler.h"
#include "runtime/driver/metrics_file.h"

namespace pipec {
namespace {

using Clock = std::chrono::steady_clock;

class Trainer {
 public:
  Trainer(Session& session, const RunOptions& options, const DataSource& data, const DataSource* eval_data,
          TraceFile* trace, RunObserver& observer, RunResult* result)
      : session_(session),
        options_(options),
        data_(data),
        eval_data_(eval_data),
        trace_(trace),
        observer_(observer),
        result_(*result),
        hyperparameters_(WithDefaults(options.hyperparameters, session.manifest().optimizer)),
        batches_(data.samples(), session.manifest().batch(), options.shuffle, options.seed),
        samples_(session.manifest().batch()),
        scalars_(session.manifest().microbatches) {
    if (session.manifest().precision == "fp16") scaler_.emplace();
  }

  absl::Status Run() {
    RETURN_IF_ERROR(Prepare());
    ASSIGN_OR_RETURN(MetricsFile metrics, MetricsFile::Open(options_.metrics));
    RETURN_IF_ERROR(EvaluateNow(0));
    for (int64_t step = 0; step < steps_; ++step) {
      if (options_.stop != nullptr && *options_.stop) {
        return absl::CancelledError(absl::StrCat("interrupted after step ", step, " of ", steps_));
      }
      ASSIGN_OR_RETURN(const StepReport report, Step(step));
      RETURN_IF_ERROR(metrics.Write(report));
      observer_.OnStep(report);
      const bool last = step + 1 == steps_;
      if (last || (options_.eval_every > 0 && (step + 1) % options_.eval_every == 0)) {
        RETURN_IF_ERROR(EvaluateNow(step + 1));
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Prepare() {
    const int64_t per_epoch = batches_.steps_per_epoch();
    if (options_.steps.has_value()) {
      steps_ = *options_.steps;
    } else {
      steps_ = static_cast<int64_t>(std::ceil(options_.epochs.value_or(1) * static_cast<double>(per_epoch)));
    }
    if (per_epoch == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the data has ", data_.samples(), " samples, one batch needs ", session_.manifest().batch(),
          "; compile with a smaller --batch or fewer --microbatches"));
    }
    ASSIGN_OR_RETURN(base_, Resolve(hyperparameters_, session_.trained_parameters()));
    now_ = base_;
    observer_.OnNote(Describe(hyperparameters_, session_.manifest().optimizer));
    observer_.OnNote(absl::StrCat(data_.samples(), " samples, ", session_.manifest().batch(), " a step, ",
                                  per_epoch, " steps an epoch, ", steps_, " steps to do"));
    return absl::OkStatus();
  }

  // Scalars of a step, the same for every rank.
  void SetScalars(int64_t step, double factor) {
    for (size_t i = 0; i < base_.size(); ++i) now_[i].lr = base_[i].lr * factor;
    const int64_t microbatch_size = session_.manifest().microbatch_size;
    for (size_t m = 0; m < scalars_.size(); ++m) {
      StepScalars& s = scalars_[m];
      s.seed = options_.seed;
      s.step = step;
      s.updates = step - (scaler_ ? scaler_->skipped_steps() : 0);
      s.loss_scale = scaler_ ? scaler_->scale() : 1;
      s.microbatch = static_cast<int64_t>(m);
      s.first_sample = s.microbatch * microbatch_size;
      s.valid_samples = microbatch_size;
      s.training = true;
      s.momentum = hyperparameters_.momentum.value_or(0);
      s.beta1 = hyperparameters_.beta1.value_or(0);
      s.beta2 = hyperparameters_.beta2.value_or(0);
      s.eps = hyperparameters_.eps.value_or(0);
      s.clip_norm = hyperparameters_.clip_norm;
      s.clip_value = hyperparameters_.clip_value;
      s.parameters = now_.data();
    }
  }

  absl::StatusOr<StepReport> Step(int64_t step) {
    const Clock::time_point begin = Clock::now();
    const double factor = LrFactor(hyperparameters_.schedule, step, steps_, hyperparameters_.warmup_steps);
    batches_.Fill(step, absl::MakeSpan(samples_));
    SetScalars(step, factor);
    ASSIGN_OR_RETURN(const StepResult done, session_.Run(StepKind::kTrain, data_, samples_, scalars_));
    ASSIGN_OR_RETURN(const std::optional<double> loss, session_.ReadScalar(&plan::RankPlan::loss));
    ASSIGN_OR_RETURN(const std::optional<double> norm, session_.ReadScalar(&plan::RankPlan::gradient_norm));
    StepReport report;
    if (scaler_) {
      report.loss_scale = scaler_->scale();
      scaler_->Update(done.stopped);
      report.skipped = done.stopped;
      report.skipped_steps = scaler_->skipped_steps();
    }
    if (done.stopped && (!scaler_ || scaler_->exhausted())) return NotFinite(step, done, loss, norm);
    if (report.skipped && done.first.found) {
      observer_.OnNote(
          absl::StrCat("step ", step + 1, " skipped, not all its values are finite: ", OriginOf(done.first)));
    }
    if (!report.skipped && done.first.found && options_.executor.check_finite && done.first.origin) {
      return NotFinite(step, done, loss, norm);
    }
    report.step = step + 1;
    report.steps = steps_;
    report.loss = loss.value_or(0);
    report.lr = hyperparameters_.lr.value.value_or(0) * factor;
    report.gradient_norm = norm;
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    report.samples_per_second = static_cast<double>(samples_.size()) / seconds;
    result_.seconds += seconds;
    result_.samples += static_cast<int64_t>(samples_.size());
    result_.steps = step + 1;
    if (report.skipped) ++result_.skipped_steps;
    if (std::isfinite(report.loss)) {
      if (!result_.first_loss.has_value()) result_.first_loss = report.loss;
      result_.last_loss = report.loss;
    }
    if (trace_ != nullptr) trace_->Add(session_, StepKind::kTrain, step + 1);
    return report;
  }

  static std::string OriginOf(const NonFinite& first) {
    std::string text = absl::StrCat(
        first.origin ? "the first such value came" : "such values were there before the step, first used",
        " in stage ", first.stage, ", node '", first.node, "' (", first.op, "), ",
        plan::ActionKind_Name(first.kind));
    if (first.microbatch >= 0) absl::StrAppend(&text, " of microbatch ", first.microbatch);
    return text;
  }

  // Nothing was updated; the same step once more, looking at every instruction, finds where it came from.
  absl::Status NotFinite(int64_t step, StepResult done, const std::optional<double>& loss,
                         const std::optional<double>& norm) {
    if (!options_.executor.check_finite) {
      for (int rank = 0; rank < session_.ranks(); ++rank) session_.executor(rank).set_check_finite(true);
      ASSIGN_OR_RETURN(done, session_.Run(StepKind::kTrain, data_, samples_, scalars_));
    }
    const bool bad_loss = loss.has_value() && !std::isfinite(*loss);
    std::string text = absl::StrCat("step ", step + 1, ": ");
    if (done.stopped) {
      absl::StrAppend(&text, bad_loss ? "the loss" : "the norm of the gradients", " is ",
                      std::isnan(bad_loss ? *loss : norm.value_or(0)) ? "nan" : "infinite", "; ");
    }
    if (!done.first.found) {
      return absl::FailedPreconditionError(absl::StrCat(text, "no instruction's result is at fault"));
    }
    absl::StrAppend(&text, OriginOf(done.first));
    if (scaler_)
      absl::StrAppend(&text, "; smaller loss scales did not help, the last was ", scaler_->scale());
    return absl::FailedPreconditionError(
        absl::StrCat(text, "; nothing was updated; try a smaller --lr, or --clip-norm"));
  }

  absl::Status EvaluateNow(int64_t step) {
    if (eval_data_ == nullptr) return absl::OkStatus();
    ASSIGN_OR_RETURN(const EvaluationReport report,
                     Evaluate(session_, *eval_data_, options_, step, observer_));
    result_.evaluations.push_back(report);
    observer_.OnEvaluation(report);
    return absl::OkStatus();
  }

  Session& session_;
  const RunOptions& options_;
  const DataSource& data_;
  const DataSource* eval_data_;
  TraceFile* trace_;
  RunObserver& observer_;
  RunResult& result_;
  Hyperparameters hyperparameters_;
  TrainingBatches batches_;
  int64_t steps_ = 0;
  std::vector<int64_t> samples_;
  std::vector<StepScalars> scalars_;
  std::vector<ParameterScalars> base_, now_;
  std::optional<LossScaler> scaler_;  // where gradients are float16
};

}  // namespace

absl::Status Train(Session& session, const RunOptions& options, const DataSource& data,
                   const DataSource* eval_data, TraceFile* trace, RunObserver& observer, RunResult* result) {
  return Trainer(session, options, data, eval_data, trace, observer, result).Run();
}

}  // namespace pipec
