// A cluster as a user describes it in JSON: hosts, their devices, the links within and between them. The format is
// described, with samples, in samples/clusters/README.md.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler/cost/cluster.h"

namespace pipec {

// All devices of the file in its order: that of rank r is the r-th. InvalidArgument for what is no such file, with
// the JSON path of the fault: no JSON, an unknown field, a missing one, a wrong type, a number out of range, an
// unknown profile, a host's name that stands twice, a device's name that stands for different rates, a pair that is
// none.
absl::StatusOr<Cluster> ParseCluster(absl::string_view text);

// The first `ranks` devices. InvalidArgument if there are fewer.
absl::StatusOr<Cluster> FirstDevices(Cluster cluster, int ranks);

}  // namespace pipec
