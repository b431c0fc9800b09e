// The exact solver for one fixed order and one memory cap that holds for each stage by itself.
#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "compiler/partition/blocks.h"
#include "compiler/partition/segment_jump.h"
#include "compiler/partition/stage_sets.h"

namespace pipec {

class FixedOrderSolver {
 public:
  static constexpr int64_t kNoCap = std::numeric_limits<int64_t>::max();

  // `in_flight`: one entry a stage.
  FixedOrderSolver(const Blocks& blocks, std::vector<int> in_flight);

  // First block of each stage of the best cut; nullopt if no cut fits.
  std::optional<std::vector<int>> Solve(int64_t cap);

 private:
  // Fills reached_ and from_ with segments that take at most `limit` seconds; returns whether all blocks can
  // make S stages. If not, next_limit_ is a limit below which nothing changes.
  bool Probe(double limit, int64_t cap);
  // Fills first_end_.
  void FindFirstEnds(double limit);
  // The segment from the reached place i to in front of its first end that is of use.
  Segment Begin(int i);
  // Removes from reached_[i] the numbers of stages from which the rest cannot be done within `limit`.
  void Prune(int i, double limit);
  std::vector<int> Path() const;
  // Among all cuts within `limit` the one with the smallest sum of squared loads; after a Probe with the same
  // arguments.
  std::vector<int> Smoothest(double limit, int64_t cap);
  double Bottleneck(const std::vector<int>& cut) const;
  // Stages that may hold a segment of so many bytes: an index into fitting_, at most `class_before`.
  int FittingClass(const Segment& segment, int64_t cap, int class_before) const;

  const Blocks& blocks_;
  const int S_;
  const std::vector<int> in_flight_;
  std::vector<int> flights_;       // distinct entries of in_flight_, ascending
  StageSets fitting_;              // [k]: stages whose in_flight is below flights_[k]; the last: all stages
  std::vector<double> remaining_;  // seconds of blocks [i, n)
  // By stage: only from here on can the blocks behind its end be done within the limit.
  std::vector<int> first_end_;
  SegmentJump jump_;
  StageSets reached_;
  std::vector<int> from_;  // by place and number of stages: where the last stage begins
  double next_limit_ = 0;
};

}  // namespace pipec
