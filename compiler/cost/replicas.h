// Devices of several replicas.
#pragma once

#include "absl/status/statusor.h"
#include "compiler/cost/cluster.h"

namespace pipec {

// The devices of the first of `replicas` pipelines of `ranks` ranks each, which are all of `cluster`, one after the
// other, with the links to the others. All must be as the first is, device by device and link by link: they run one
// plan. InvalidArgument if one is not.
absl::StatusOr<Cluster> FirstReplica(Cluster cluster, int ranks, int replicas);

}  // namespace pipec
