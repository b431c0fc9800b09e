// Latency and bandwidth of a link from messages that were measured on it.
#pragma once

#include <vector>

#include "compiler/cost/cluster.h"

namespace pipec {

struct MeasuredMessage {
  double bytes = 0;
  double seconds = 0;
  double runs = 0;
};

// The line, with neither latency nor time a byte below 0, that fits the mean time of each size best, by relative
// errors; two pieces that meet at one of the sizes where the line misfits by more than 10 % (root mean square) and
// there are two sizes or more up to that one and beyond it. Where all messages have one size: through it, with the
// bandwidth of `modelled` unless that alone takes longer. `modelled` itself if there are no messages, else of
// origin kFitted.
Link FitLink(const std::vector<MeasuredMessage>& messages, const Link& modelled);

}  // namespace pipec
