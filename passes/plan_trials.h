// The plans that were tried so far, and how good the two best of them are.
#pragma once

#include <limits>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "compiler/ir/module.h"
#include "passes/nothing_fits.h"
#include "passes/plan_maker.h"

namespace pipec {

class PlanTrials {
 public:
  // `maker` must outlive the trials.
  explicit PlanTrials(PlanMaker& maker) : maker_(maker) {}

  // Compiles a candidate and adds it, with its figures or why there are none; the module if there is one.
  std::unique_ptr<Module> Try(PlanCandidate candidate);
  void Refuse(PlanCandidate candidate, const absl::Status& why);
  // Sets the last one's bound_seconds.
  void BoundLast(double seconds) { candidates_.back().bound_seconds = seconds; }
  // As if the last had not been tried.
  void ForgetLast() { candidates_.pop_back(); }

  // Whether a plan that takes so long, or longer, can be among the two best.
  bool MayBeChosen(double sample_seconds) const;

  const std::vector<PlanCandidate>& candidates() const { return candidates_; }
  // The least time a sample first, of equals the one with fewer ranks, then the one that needs less memory; refused
  // ones last. Orders that searches found for one shape have the same flags: the best stands for all of them.
  std::vector<PlanCandidate> Sorted() const;

  const absl::Status& first_refusal() const { return first_refusal_; }
  const std::vector<LackingMemory>& lacking() const { return lacking_; }
  // The model cannot be cut into so many.
  int too_many_stages() const { return too_many_stages_; }

 private:
  PlanMaker& maker_;
  std::vector<PlanCandidate> candidates_;
  absl::Status first_refusal_;
  std::vector<LackingMemory> lacking_;
  int too_many_stages_ = std::numeric_limits<int>::max();
};

}  // namespace pipec
