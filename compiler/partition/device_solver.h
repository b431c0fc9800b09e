// The exact solver where devices hold several stages, whose seconds and bytes add up: branch and bound over the ideals.
//
// A label says what the devices hold when the stages in front of an ideal are given; labels grow by one stage at a
// time. One is let go of if another with the same stages in front of the same ideal has no more of anything on any
// device that has stages to come; or if what is left to do, with the fewest messages that it can have, is too much
// for the time that is left on those devices.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "compiler/partition/ideal_costs.h"
#include "compiler/partition/ideals.h"
#include "compiler/partition/memory_use.h"
#include "compiler/partition/problem.h"
#include "compiler/partition/stage_rules.h"

namespace pipec {

struct DeviceSearch {
  int64_t steps = 0;  // after so many it gives up: about 5 ns each
  int labels =
      std::numeric_limits<int>::max();  // by place and stages; beyond, only the most promising are kept
};

struct DeviceCut {
  std::optional<std::vector<int>> stage_of;  // by block; none: no better one was found
  double time = 0;                           // of that cut, or of what was known
  bool proven = true;  // nothing better exists; false if it gave up or labels were let go
};

// Indices of all ideals.
std::vector<int> AllPlaces(const Ideals& ideals);

class DeviceSolver {
 public:
  // All must outlive this. Stages begin at `places` only: indices of ideals, ascending, from the first to the last.
  DeviceSolver(const PartitionProblem& problem, const Blocks& blocks, const Ideals& ideals,
               std::vector<int> places, const DeviceSearch& search);

  // The cut of the least StepTime, if that is below `known`. No cut's slowest device is faster than `bound`. To be
  // called once.
  DeviceCut Solve(double bound, double known);
  int64_t steps() const { return steps_; }

 private:
  struct Device {
    double seconds = 0;
    MemoryUse kept;  // of devices with a limit
  };
  struct Label {
    int place = 0, from = 0;   // the label that it grew from
    double most = 0, sum = 0;  // seconds of the devices that have no more stages to come
    double least = 0;          // StepTime of whatever it grows to
  };

  size_t At(int place, int stages) const { return static_cast<size_t>(place) * (S_ + 1) + stages; }
  double Seconds(int rank, const Device& device) const;
  double StageSeconds(int stage, const StageCost& cost) const;
  double LeastThrough(int place, int stages) const;
  // Fills work_behind_, seconds_behind_ and what goes with them; false if it gave up.
  bool FindBehind();
  void Grow(int label, int stage, int place, const StageCost& cost);
  // Fills grown_.least from grown_devices_; false if the label is of no use.
  bool FindLeast(int stages);
  bool NoMore(const Label& label, const Device* devices, const Label& other, const Device* others,
              int stages) const;
  std::vector<int> StagesOf(int label) const;

  const PartitionProblem& problem_;
  const Blocks& blocks_;
  const Ideals& ideals_;
  const int S_, ranks_;
  const StageRules rules_;
  const std::vector<int> places_;
  const DeviceSearch search_;
  IdealCosts costs_;
  std::vector<double> seconds_, crossing_;       // by place
  std::vector<int> rank_of_;                     // by stage
  std::vector<double> speed_, memory_;           // by rank
  std::vector<std::vector<int>> ranks_to_come_;  // by stages in front: with stages behind
  std::vector<double> speed_to_come_;            // of those, together
  double fastest_ = 0, slowest_ = std::numeric_limits<double>::infinity();

  double bound_ = 0, known_ = 0;
  // By place and stages in front of it: the least that is left to do, messages included; times speed, and in
  // seconds. Infinity: nothing better than what is known.
  std::vector<double> work_behind_, seconds_behind_;
  std::vector<char> some_behind_;              // by place: not all infinity
  std::vector<std::vector<int>> stages_from_;  // by place: where a stage from there may end
  std::vector<Label> labels_;
  std::vector<Device> devices_;              // by label and rank
  std::vector<std::vector<int>> labels_at_;  // by place and stages in front of it
  Label grown_;
  std::vector<Device> grown_devices_;
  int best_ = -1;  // the label of the best cut
  int64_t steps_ = 0;
  bool all_kept_ = true;
};

}  // namespace pipec
