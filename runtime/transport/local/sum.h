// A sum over replicas: what the ranks that take part in it have said, and how it is made.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "runtime/transport/transport.h"

namespace pipec {

struct SumEnd {
  std::vector<Summand> summands;  // keeps its capacity from sum to sum
  Event* done = nullptr;          // null: not posted
  // Where the host cannot add: the end's stream for sums, and the point of the rank's own work from which on the
  // summands are there.
  Stream* stream = nullptr;
  Event* ready = nullptr;
};

struct Sum {
  std::vector<SumEnd> ends;  // by replica
  std::vector<Event*> told;  // of a sum that is made: what its ends wait for
  int posted = 0;
  bool moving = false;  // by the thread that came last; then all ends are its own
};

// FailedPrecondition, naming the stage, if ends differ in number, types or sizes of their summands.
absl::Status CheckTypes(const Sum& sum, int stage);

// Adds in the order of the replicas and writes the result to all of them; the host can address every end.
void AddUpByHost(const Sum& sum);

}  // namespace pipec
