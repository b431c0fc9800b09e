// The exact solver for one order of the blocks, where each stage keeps its memory cap by itself.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/partition/blocks.h"
#include "compiler/partition/segment_jump.h"
#include "compiler/partition/stage_fit.h"
#include "compiler/partition/stage_sets.h"
#include "compiler/partition/threshold.h"

namespace pipec {

class FixedOrderSolver : public ThresholdSolver {
 public:
  // `blocks` must outlive this, and be at least as many as the stages.
  FixedOrderSolver(const Blocks& blocks, const StageRules& rules);

  Answer Probe(double limit) override;
  double bottleneck() const override { return bottleneck_; }
  double next_limit() const override { return next_limit_; }
  std::vector<int> Best(double limit, Least least, double& sum) override;

  // Segments looked at so far.
  int64_t steps() const { return steps_; }
  // First blocks of the stages of the cut that the last Probe or Best found.
  const std::vector<int>& cut() const { return cut_; }

 private:
  // Fills first_end_.
  void FindFirstEnds(double limit);
  // The segment from the reached place i to in front of its first end that is of use.
  Segment Begin(int i);
  // Removes from reached_[i] the numbers of stages from which the rest cannot be done within `limit`.
  void Prune(int i, double limit);
  // Calls visit(segment, stages that can hold it) for each segment from the reached place i that is within `limit`
  // and the cap of some stage.
  template <typename Visit>
  void ForEachSegment(int i, double limit, Visit visit);
  // Follows from_ back.
  void FindPath();
  void FindBottleneck();

  const Blocks& blocks_;
  const int S_;
  const StageFit fit_;
  std::vector<double> remaining_;        // seconds of blocks [i, n)
  std::vector<double> remaining_speed_;  // of stages [s, S)
  // By stage: only from here on can the blocks behind its end be done within the limit.
  std::vector<int> first_end_;
  SegmentJump jump_;
  StageSets reached_;
  std::vector<int> from_;  // by place and number of stages: where the last stage begins
  double next_limit_ = 0, bottleneck_ = 0;
  std::vector<int> cut_;
  int64_t steps_ = 0;
};

}  // namespace pipec
