#include "passes/plan_bounds.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "compiler/cost/node_cost.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

int64_t BytesThatStay(const Module& module) {
  int64_t bytes = 0;
  for (const Value* value : module.graph.Values()) {
    const bool stays = value->kind() == ValueKind::kParameter || value->kind() == ValueKind::kAccumulator ||
                       value->kind() == ValueKind::kState;
    if (stays && !value->uses().empty()) bytes += value->type.bytes();
  }
  return bytes;
}

// Seconds of the nodes' even shares on the devices: of a microbatch, and of the update.
//
// Whatever node is on whichever device r, weights y_r of sum 1 give: slowest rank >= sum of y_r (time of r's nodes)
// >= sum over nodes of min over r of y_r (time of the node on r). With y_r as 1 / (time of all nodes on r) that is
// as even as can be where a faster device is faster by as much for every node.
std::pair<double, double> EvenShare(const Module& module, const Cluster& cluster) {
  std::map<std::string, std::vector<double>> times;  // by name of the device: of each node
  for (const DeviceProfile& device : cluster.devices) {
    std::vector<double>& seconds = times[device.name];
    if (!seconds.empty()) continue;
    for (const Node* node : module.graph.Nodes()) seconds.push_back(NodeSeconds(*node, device));
  }
  const auto rate = [&times](const std::string& device) {
    double sum = 0;
    for (const double seconds : times[device]) sum += seconds;
    return sum > 0 ? 1 / sum : 1;
  };
  double rates = 0;
  for (const DeviceProfile& device : cluster.devices) rates += rate(device.name);
  std::vector<double> least(module.graph.num_nodes(), std::numeric_limits<double>::infinity());
  for (const auto& [device, seconds] : times) {
    const double weight = rate(device) / rates;
    for (size_t k = 0; k < seconds.size(); ++k) least[k] = std::min(least[k], weight * seconds[k]);
  }
  double microbatch = 0, update = 0;
  size_t k = 0;
  for (const Node* node : module.graph.Nodes()) (node->kind == Kind::kU ? update : microbatch) += least[k++];
  return {microbatch, update};
}

}  // namespace

absl::Status PlanBounds::LookAt(int microbatches) {
  if (work_.contains(Key(microbatches))) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::unique_ptr<Module> module, maker_.BeforeCut(microbatches));
  Work work;
  work.microbatch_samples = module->microbatch_size * module->replicas;
  for (const int ranks : space_.ranks) {
    if (!clusters_.contains(ranks)) {
      ASSIGN_OR_RETURN(clusters_[ranks], maker_.ClusterOf(ranks));
    }
    for (const DeviceProfile& device : clusters_[ranks].devices) measured_ |= device.measured != nullptr;
    work.shares[ranks] = EvenShare(*module, clusters_[ranks]);
  }
  always_bytes_ = BytesThatStay(*module);
  work_[Key(microbatches)] = std::move(work);
  return absl::OkStatus();
}

double PlanBounds::SampleSeconds(int ranks, int microbatches) const {
  double most = 0;
  for (const auto& [key, work] : work_) {
    if (key > Key(microbatches) || (key < Key(microbatches) && measured_)) continue;
    const double number = key > 0 ? key : microbatches;
    const auto& [microbatch, update] = work.shares.at(ranks);
    most = std::max(most,
                    (number * microbatch + update) / (number * static_cast<double>(work.microbatch_samples)));
  }
  return most;
}

int64_t PlanBounds::DeviceBytes(int ranks) const {
  int64_t bytes = 0;
  for (const DeviceProfile& device : clusters_.at(ranks).devices) {
    if (device.memory_bytes <= 0) return 0;
    bytes += device.memory_bytes;
  }
  return bytes;
}

int64_t PlanBounds::LeastDeviceBytes(int ranks) const {
  int64_t least = 0;
  for (const DeviceProfile& device : clusters_.at(ranks).devices) {
    if (device.memory_bytes > 0 && (least == 0 || device.memory_bytes < least)) least = device.memory_bytes;
  }
  return least;
}

}  // namespace pipec
