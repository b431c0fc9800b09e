#include "tools/choose_plan.h"

#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/report/advice.h"
#include "passes/memory_limit.h"
#include "passes/pass_manager.h"
#include "runtime/base/status.h"
#include "tools/compile_module.h"

namespace pipec {
namespace {

constexpr char kCut[] = "partition-stages";

class FlagsMaker : public PlanMaker {
 public:
  explicit FlagsMaker(const CompileFlags& flags) : flags_(flags) {}

  absl::StatusOr<Cluster> ClusterOf(int ranks) override {
    ASSIGN_OR_RETURN(const CompileOptions options, With({"", {ranks, 1, 1}}).Options());
    return options.cluster;
  }

  absl::StatusOr<std::unique_ptr<Module>> BeforeCut(int microbatches) override {
    CompileFlags with = With({"", {1, 1, microbatches}});
    ASSIGN_OR_RETURN(std::unique_ptr<Module> module, with.Import());
    PassManagerOptions only;
    for (const PassInfo& pass : AllPasses()) {
      if (pass.name == kCut || !only.disabled.empty()) only.disabled.emplace_back(pass.name);
    }
    RETURN_IF_ERROR(RunPipeline(*module, with.context(), only));
    return module;
  }

  absl::StatusOr<std::unique_ptr<Module>> Compile(const PlanCandidate& candidate,
                                                  int64_t memory_limit) override {
    CompileFlags with = With(candidate);
    if (memory_limit > 0) with.SetMemory(memory_limit);
    return candidate.found ? CompileFound(with) : CompileModule(with);
  }

  absl::StatusOr<std::unique_ptr<Module>> Draft(const PlanCandidate& candidate) override {
    CompileFlags with = With(candidate);
    with.SetDraftMemory(true);
    return CompileFound(with);
  }

  void OnPhase(absl::string_view what) override { std::cerr << "trying " << what << std::endl; }

 private:
  static absl::StatusOr<std::unique_ptr<Module>> CompileFound(CompileFlags& with) {
    // Its time was found without recompute: rather an order that keeps less.
    ASSIGN_OR_RETURN(const CompileOptions options, with.Options());
    with.CutWithin(MemoryLimits(options.cluster), false);
    ASSIGN_OR_RETURN(std::unique_ptr<Module> module, with.Import());
    RETURN_IF_ERROR(RunPipeline(*module, with.context()));
    return module;
  }

  CompileFlags With(const PlanCandidate& candidate) const {
    CompileFlags with = flags_;
    with.UseCandidate(candidate);
    return with;
  }

  const CompileFlags& flags_;
};

std::vector<std::string> Assumed(const CompileFlags& flags, const PlanSpace& space) {
  std::vector<std::string> assumed;
  if (flags.open().stages) {
    assumed.push_back(
        absl::StrCat("ranks are chosen from ", absl::StrJoin(space.ranks, ", "), ": ", flags.DeviceSource()));
  }
  if (flags.open().microbatches) {
    assumed.push_back(absl::StrCat("microbatches are chosen from ", absl::StrJoin(space.microbatches, ", "),
                                   space.batch > 0
                                       ? ", which divide the batch (--microbatches)"
                                       : ", with which the batch grows (--microbatches, --batch)"));
  }
  return assumed;
}

}  // namespace

absl::StatusOr<ChosenPlan> ChoosePlan(const CompileFlags& flags) {
  ASSIGN_OR_RETURN(const PlanSpace space, flags.Space());
  CompileFlags resolved = flags;
  resolved.UseCandidate({"", {space.ranks.back(), 1, space.microbatches[0]}});
  ASSIGN_OR_RETURN(const CompileOptions options, resolved.Options());
  FlagsMaker maker(flags);
  ChosenPlan chosen;
  ASSIGN_OR_RETURN(chosen.plan, FindAutoPlan(options, space, maker));
  chosen.most_ranks = space.ranks.back();
  chosen.assumed = Assumed(flags, space);
  return chosen;
}

void AddCandidates(const ChosenPlan& chosen, Report& report) {
  for (const PlanCandidate& candidate : chosen.plan.candidates) {
    report.candidates.push_back({candidate.schedule, candidate.shape, candidate.batch, candidate.step_seconds,
                                 candidate.order_seconds, candidate.bubble_ratio, candidate.peak_bytes,
                                 candidate.refusal});
  }
  report.candidates_bound_seconds = chosen.plan.candidates[0].bound_seconds;
  report.candidates_passed_over = chosen.plan.passed_over;
  report.notes.insert(report.notes.begin(), chosen.assumed.begin(), chosen.assumed.end());
  const std::vector<std::string> advice = AdviceOnChoice(report, chosen.most_ranks);
  report.advice.insert(report.advice.begin(), advice.begin(), advice.end());
}

}  // namespace pipec
