// What a cut takes on each rank's own device and links.
#pragma once

#include <optional>
#include <vector>

#include "compiler/cost/cluster.h"
#include "compiler/partition/blocks.h"
#include "passes/stage_items.h"

namespace pipec {

class RankLoads {
 public:
  // Both must outlive this.
  RankLoads(const StageItems& items, const Cluster& cluster);

  // By rank, seconds of a cut, given by item: each item on its rank's own device, each tensor at each stage that
  // sends or receives it by the slowest of the links that it takes there, and what is made again so that the rank
  // is within the problem's memory limit, if it has one; infinity if that is not enough. Where all are equal that
  // is what DeviceLoads says.
  std::vector<double> Of(const std::vector<int>& stage_of) const;
  double Slowest(const std::vector<int>& stage_of) const;

 private:
  void AddRemade(const std::vector<int>& stage_of, std::vector<double>& seconds) const;

  const StageItems& items_;
  const Cluster& cluster_;
  std::optional<Blocks> blocks_;  // where memory is limited
};

}  // namespace pipec
