// How many ranks and microbatches --stages=auto and --microbatches=auto choose from.
#pragma once

#include <cstdint>
#include <vector>

namespace pipec {

struct PlanSpace {
  std::vector<int> ranks;         // ascending; one if it was given
  std::vector<int> microbatches;  // ascending; one if it was given
  // Samples a step, whatever the number of microbatches. 0: a microbatch is what it is, and the batch grows with
  // their number.
  int64_t batch = 0;
};

// Up to this number all; beyond it powers of two and divisors of the number of devices.
inline constexpr int kEveryRanks = 8;
// More microbatches a rank leave little of the bubble of a flush: 1/9 of the time.
inline constexpr int kMicrobatchesARank = 8;
// As many are tried for few ranks too.
inline constexpr int kFewestMicrobatches = 32;

std::vector<int> RanksToTry(int devices);
// Of a batch that is given its divisors, else powers of two: up to kMicrobatchesARank for each of `most_ranks`, and
// of the divisors one more.
std::vector<int> MicrobatchesToTry(int most_ranks, int64_t batch);

}  // namespace pipec
