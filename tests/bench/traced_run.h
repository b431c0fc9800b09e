// What a trace of piperun says of a run's steps.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace pipec::bench {

struct TracedRun {
  // Seconds of each step, the first left out if there are more: from the begin of the first action that computes or
  // sends until the last is over, and from there until the next step's first action begins.
  std::vector<double> steps, gaps;
  // From a step's first action to the next one's, the first step left out if there are more than two.
  std::vector<double> periods;
  // Of the action of each stage, forward and backward (B, or I and W together): median over steps and microbatches.
  std::map<int, std::pair<double, double>> stages;
};

// Ends the bench with a message if there is no such trace.
TracedRun ReadTrace(const std::string& path);

}  // namespace pipec::bench
