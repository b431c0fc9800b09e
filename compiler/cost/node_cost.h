// Modelled times, before anything ran: the roofline of a device profile (Williams et al., CACM 2009).
#pragma once

#include "compiler/cost/cluster.h"
#include "compiler/ir/graph.h"

namespace pipec {

// Seconds of one run of `node`: launch + max(flops / peak, bytes / bandwidth). Views and messages are no
// instructions and take none.
double NodeSeconds(const Node& node, const DeviceProfile& device);

// Seconds of one message on the wire: latency + bytes / bandwidth. No bytes, no message: 0.
double MessageSeconds(int64_t bytes, const Link& link);

}  // namespace pipec
