// Where to keep what a straight sequence of nodes computed, when the rest is computed again for the backward pass.
#pragma once

#include <cstdint>
#include <vector>

namespace pipec {

// Bytes, of one microbatch. n nodes in their order of execution.
struct SegmentProblem {
  std::vector<int64_t> made;      // n: by node
  std::vector<int64_t> crossing;  // n - 1: made by nodes up to k, used after it
  int in_flight = 1;              // microbatches for which what crosses is kept at once
};

// Cuts the sequence into segments, each computed again as a whole before its backward pass: the positions k behind
// which a cut lies, ascending, none if one segment is best. Minimises in_flight x (what crosses the cuts) + (what
// the largest segment makes), over at most 512 places to cut (those with least crossing in their neighbourhood if
// there are more) and sizes of the largest segment that are each 5 % apart: so within 5 % of the least for n <=
// 512. A value that crosses several cuts is counted at each. Time: at most 512^2 x the number of sizes.
std::vector<int> CutSegments(const SegmentProblem& problem);

// What CutSegments minimises.
int64_t SegmentBytes(const SegmentProblem& problem, const std::vector<int>& cuts);

}  // namespace pipec
