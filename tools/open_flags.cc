// Of the flags of a compilation, those that are to be chosen.
#include "absl/strings/str_cat.h"
#include "passes/chosen_schedule.h"
#include "runtime/base/status.h"
#include "tools/compile_flags.h"

namespace pipec {

CompileFlags::Open CompileFlags::open() const {
  return {schedule_ == kAutoSchedule, stages_open_, microbatches_open_};
}

absl::StatusOr<PlanSpace> CompileFlags::Space() const {
  CompileFlags closed = *this;
  if (stages_open_) closed.stages_ = 1;
  closed.stages_open_ = closed.microbatches_open_ = false;
  ASSIGN_OR_RETURN(const CompileOptions options, closed.Options());
  PlanSpace space{{options.ranks}, {options.microbatches}, batch_};
  if (stages_open_) {
    ASSIGN_OR_RETURN(const int devices, devices_.Count());
    if (devices < options.replicas) {
      return absl::InvalidArgumentError(
          absl::StrCat("--replicas=", options.replicas, " needs as many devices, and there ",
                       devices == 1 ? "is " : "are ", devices, ": ", devices_.Source()));
    }
    space.ranks = RanksToTry(devices / options.replicas);
  }
  if (microbatches_open_)
    space.microbatches = MicrobatchesToTry(space.ranks.back(), batch_ / options.replicas);
  return space;
}

absl::StatusOr<CompileOptions> CompileFlags::Options() const {
  CompileFlags resolved = *this;
  RETURN_IF_ERROR(resolved.Resolve().status());
  return resolved.context_.options;
}

void CompileFlags::UseCandidate(const PlanCandidate& candidate) {
  const Open open = this->open();
  if (open.stages) stages_ = candidate.shape.ranks;
  if (open.microbatches) microbatches_ = candidate.shape.microbatches;
  stages_open_ = microbatches_open_ = false;
  if (!open.schedule || candidate.schedule.empty()) return;
  schedule_ = candidate.schedule;
  context_.options.schedule_from_file = candidate.found;
  context_.options.cut_for = candidate.cut_for;
  context_.options.cut_for_one_in_flight = candidate.found && !candidate.cut_for;
  context_.options.virtual_stages = candidate.shape.virtual_stages;
}

}  // namespace pipec
