#include "passes/plan_space.h"

#include <algorithm>

namespace pipec {
namespace {

bool IsPowerOfTwo(int number) { return (number & (number - 1)) == 0; }

}  // namespace

std::vector<int> RanksToTry(int devices) {
  std::vector<int> ranks;
  for (int p = 1; p <= devices; ++p) {
    if (p <= kEveryRanks || IsPowerOfTwo(p) || devices % p == 0) ranks.push_back(p);
  }
  return ranks;
}

std::vector<int> MicrobatchesToTry(int most_ranks, int64_t batch) {
  const int64_t most = std::max<int64_t>(kFewestMicrobatches, int64_t{kMicrobatchesARank} * most_ranks);
  std::vector<int> microbatches;
  for (int64_t m = 1; m <= (batch > 0 ? batch : most); ++m) {
    if (batch > 0 ? batch % m != 0 : !IsPowerOfTwo(static_cast<int>(m))) continue;
    microbatches.push_back(static_cast<int>(m));
    if (m >= most) break;
  }
  return microbatches;
}

}  // namespace pipec
