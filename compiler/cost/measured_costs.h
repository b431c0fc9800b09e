// Times that piperun --profile measured: the third tier beside modelled ones.
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler/cost/cluster.h"

namespace pipec {

struct MeasuredMessage {
  double bytes = 0;
  double seconds = 0;
  double runs = 0;
};

struct MeasuredCosts {
  std::string device;
  int threads = 0;                                        // of a rank
  int ranks = 0;                                          // busy at a time
  absl::flat_hash_map<std::string, double> node_seconds;  // of a run, by CostKey
  double action_seconds = 0;                              // what an action takes beside its nodes
  std::vector<MeasuredMessage> messages;
};

// A profile in the format of piperun --profile (runtime/driver/profile_file.h). Nodes of one key: the mean of their
// runs. InvalidArgument, naming what is wrong, for a text that is no such profile, of another version, or with times
// that are none.
absl::StatusOr<MeasuredCosts> ParseProfile(absl::string_view text);

// Latency and bandwidth that fit the messages best (least squares, neither below 0); where all have one size, with the
// bandwidth of `modelled` unless that alone takes longer. `modelled` itself if there are none.
Link FitLink(const std::vector<MeasuredMessage>& messages, const Link& modelled);

// From here on nodes on devices of the profile's name, and messages between such of one host, take what was measured, as
// far as it was. InvalidArgument if the cluster has none.
absl::Status UseProfile(MeasuredCosts costs, Cluster& cluster);

}  // namespace pipec
