// The exact solver for every valid order: dynamic programming over the ideals (Tarnawski et al., Efficient
// algorithms for device placement of DNN graph operators, NeurIPS 2020), where each stage keeps its memory cap
// by itself. A stage is what lies between two ideals. For a limit, the stage counts with which each ideal can be
// cut are one bit set; an ideal is passed over for the counts with which its blocks and the messages over its
// boundary are too much for the stages in front of it, or the rest for those behind.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/partition/blocks.h"
#include "compiler/partition/ideal_costs.h"
#include "compiler/partition/ideals.h"
#include "compiler/partition/stage_fit.h"
#include "compiler/partition/stage_sets.h"
#include "compiler/partition/threshold.h"

namespace pipec {

class IdealSolver : public ThresholdSolver {
 public:
  // `blocks` and `ideals`, which are theirs, must outlive this. Gives up when it has looked at `most_pairs` pairs
  // of ideals, all probes together.
  IdealSolver(const Blocks& blocks, const Ideals& ideals, const StageRules& rules, int64_t most_pairs);

  Answer Probe(double limit) override;
  double bottleneck() const override { return bottleneck_; }
  double next_limit() const override { return limit_; }
  std::vector<int> Best(double limit, Least least, double& sum) override;

  int64_t pairs() const { return pairs_; }

 private:
  // Fills possible_.
  void FindPossible(double limit);
  // Calls visit(b, cost, stages that can hold it) for the ideals b around a, where wanted(b) and some stage can hold
  // what lies between. False if it gave up.
  template <typename Wanted, typename Visit>
  bool ForEachStage(int a, double limit, Wanted wanted, Visit visit);
  // The stages between these ideals, S + 1 of them; sets stage_seconds_ and bottleneck_.
  std::vector<int> StagesBetween(const std::vector<int>& boundaries);
  std::vector<int> Path() const;

  const Blocks& blocks_;
  const Ideals& ideals_;
  const int S_;
  const StageFit fit_;
  IdealCosts costs_;
  const int64_t most_pairs_;
  std::vector<double> front_speed_;  // of stages [0, s)
  double slowest_ = 0;
  std::vector<double> seconds_, crossing_;  // by ideal
  StageSets possible_, reached_;  // by ideal
  std::vector<int> from_;         // by ideal and number of stages: the ideal in front of the last one
  std::vector<double> stage_seconds_;  // of the cut that StagesBetween made
  double limit_ = 0, bottleneck_ = 0;
  int64_t pairs_ = 0;
};

}  // namespace pipec
