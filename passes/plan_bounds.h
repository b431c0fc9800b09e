// What no plan of a model can beat, by what the model is before it is cut.
#pragma once

#include <map>
#include <utility>

#include "absl/status/statusor.h"
#include "compiler/cost/cluster.h"
#include "compiler/ir/module.h"
#include "passes/plan_maker.h"
#include "passes/plan_space.h"

namespace pipec {

class PlanBounds {
 public:
  // Both must outlive the bounds.
  PlanBounds(const PlanSpace& space, PlanMaker& maker) : space_(space), maker_(maker) {}

  // Looks at the model with so many microbatches, once; errors are PlanMaker's. Before anything else is asked this
  // has to succeed for one number of microbatches.
  absl::Status LookAt(int microbatches);

  // Seconds a sample: some rank has at least its share of the time of all nodes, and shares are as even as the
  // devices' rates allow. With microbatches that were not looked at, the most that is known: the same samples in
  // more microbatches take no less.
  double SampleSeconds(int ranks, int microbatches) const;
  // Bytes that all ranks together hold always, at least: parameters, accumulators and optimizer state.
  int64_t always_bytes() const { return always_bytes_; }
  // Bytes of all their devices together; 0: one of them has no limit.
  int64_t DeviceBytes(int ranks) const;
  // Of the device that has least; 0: none has a limit.
  int64_t LeastDeviceBytes(int ranks) const;

 private:
  struct Work {
    std::map<int, std::pair<double, double>> shares;  // by ranks: seconds of a microbatch and of the update
    int64_t microbatch_samples = 0;
  };
  // One look is enough if the microbatch is always the same.
  int Key(int microbatches) const { return space_.batch > 0 ? microbatches : 0; }

  const PlanSpace& space_;
  PlanMaker& maker_;
  std::map<int, Cluster> clusters_;  // by ranks
  std::map<int, Work> work_;         // by Key
  bool measured_ = false;            // then more microbatches of the same samples may take less, as it seems
  int64_t always_bytes_ = 0;
};

}  // namespace pipec
