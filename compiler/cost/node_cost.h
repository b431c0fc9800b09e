// What things take before the plan runs: measured if a profile has them, fitted if it has others (measured_costs.h),
// modelled by the roofline of a device (Williams et al., CACM 2009) if there is no profile.
#pragma once

#include "compiler/cost/cluster.h"
#include "compiler/ir/graph.h"

namespace pipec {

struct NodeTime {
  double seconds = 0;
  Origin origin = Origin::kModelled;
};

// One run of `node`. Modelled: launch + max(flops / peak, bytes / bandwidth). Views and messages are no instructions
// and take none, nor does what only evaluation runs (attribute eval_only).
NodeTime TimeOf(const Node& node, const DeviceProfile& device);
inline double NodeSeconds(const Node& node, const DeviceProfile& device) {
  return TimeOf(node, device).seconds;
}

// Whether a node takes time at all.
bool TakesTime(const Node& node);

// What an action takes beside its nodes; 0 unless measured.
double ActionSeconds(const DeviceProfile& device);

// Seconds of one message on the wire: latency + bytes / bandwidth, in two pieces if the link has a knee. No bytes,
// no message: 0.
double MessageSeconds(double bytes, const Link& link);

// Seconds until so many replicas have added up `bytes` of each, by links like this one: a ring, in which every replica
// sends a part of 1 / replicas 2 (replicas - 1) times (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms",
// JPDC 2009). The additions are taken to be free.
double SumSeconds(double bytes, int replicas, const Link& link);

}  // namespace pipec
