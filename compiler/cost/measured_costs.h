// Times that piperun --profile measured, and those of other nodes and messages that follow from them.
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler/cost/cluster.h"
#include "compiler/cost/fit_link.h"
#include "compiler/cost/fitted_costs.h"

namespace pipec {

struct MeasuredCosts {
  std::string device;
  int threads = 0;                                        // of a rank
  int ranks = 0;                                          // busy at a time
  absl::flat_hash_map<std::string, double> node_seconds;  // of a run, by CostKey
  FittedCosts fitted;                                     // of other nodes
  double action_seconds = 0;                              // what an action takes beside its nodes
  std::vector<MeasuredMessage> messages;
};

// A profile in the format of piperun --profile (runtime/driver/profile_file.h). Nodes of one key: the mean of their
// runs. InvalidArgument, naming what is wrong, for a text that is no such profile, of another version, or with times
// that are none.
absl::StatusOr<MeasuredCosts> ParseProfile(absl::string_view text);

// From here on nodes on devices of the profile's name, and messages between such of one host, take what was
// measured, and where it was not measured of them, what is fitted to it. InvalidArgument if the cluster has no such
// device. Whose model it was does not matter: nodes are found by their keys, and a node of another model is of the
// same kind as one that was measured, or it is fitted.
absl::Status UseProfile(MeasuredCosts costs, Cluster& cluster);

}  // namespace pipec
