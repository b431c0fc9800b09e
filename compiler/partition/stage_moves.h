// Moves of single blocks to other stages that keep the order of the stages valid and every device within its
// memory: simulated annealing on what the slowest device takes.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "compiler/partition/blocks.h"
#include "compiler/partition/memory_use.h"

namespace pipec {

class StageMoves {
 public:
  // All must outlive this.
  StageMoves(const PartitionProblem& problem, const Blocks& blocks);

  // The best of the cuts on the way from `stage_of`, which is valid and fits, after so many tries. `heat`: how
  // much worse a cut may be to be taken at first, as a share of the whole; it falls to nothing.
  std::vector<int> Improve(const std::vector<int>& stage_of, int64_t tries, double heat,
                           std::mt19937_64& random);

  // What the last Improve found: the StepTime of solve.h.
  double step_time() const { return best_time_; }

 private:
  struct Device {
    double seconds = 0;  // with nothing made again
    MemoryUse kept;
    double load = 0;     // seconds with what is made again; infinity if it does not fit
  };
  // The two devices after a move; they are the same one if the stages share it.
  struct Change {
    Device from, to;
  };

  void Start(const std::vector<int>& stage_of);
  // Scale, powers and sum anew.
  void Sum();
  // Stages that block could lie in, as far as its parents and children go.
  std::pair<int, int> Range(int block) const;
  Change Cost(int block, int to) const;
  void FindLoad(int rank, Device& device) const;
  void Move(int block, int to, const Change& change);
  // What annealing lowers: near StepTime, but smooth.
  double Energy(double powers, double sum) const;
  double Power(double seconds) const;
  double StepTimeNow() const;

  const PartitionProblem& problem_;
  const Blocks& blocks_;
  const int S_;
  const std::vector<std::vector<int>> children_;
  std::vector<std::vector<int>> tensors_of_;    // by block
  std::vector<int> rank_of_;                    // by stage
  std::vector<Copies> copies_;                  // by stage
  std::vector<double> speed_, memory_;          // by rank
  bool limited_ = false;                        // some memory is
  std::vector<int> stage_of_, held_;            // by block; by stage, blocks
  std::vector<int> tensor_held_, shared_held_;  // by tensor (group) and stage: blocks
  std::vector<Device> devices_;
  double scale_ = 1, powers_ = 0, sum_ = 0;
  double best_time_ = 0;
};

}  // namespace pipec
