// Places what every microbatch has anew: each in each microbatch where it is free for as long as it lives.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "passes/rank_timeline.h"

namespace pipec {

// A buffer that each microbatch has anew.
struct PassingBuffer {
  int buffer = -1;                // in RankMemory::buffers
  int group = 0;                  // those of a group are touched by the same actions
  std::vector<Life> train, eval;  // by microbatch; none in a list that there is not
};

// A buffer that comes and goes once a step, in training only.
struct StepBuffer {
  int buffer = -1;
  Life life;
};

struct PassingBuffers {
  int microbatches = 1;
  std::vector<PassingBuffer> of_microbatches;
  std::vector<StepBuffer> of_step;
};

// How finely, and for how long, a place is looked for.
struct PlacementEffort {
  // Buffers of a list, one a microbatch; where there are more, bundles of them (compiler/memory/bundles.h).
  int items = 1;
  // Of a search, where what is placed at once leaves a gap.
  int64_t steps = 0;
  // Bytes of arena that there are, where a draft, coarse and without a search, is enough if it lies within them or
  // if what is live at once does not; -1: it never is.
  int64_t draft_limit = -1;
};

// Fills in offsets and slot classes of these buffers, arena_bytes, lower_bound and peaks; the others lie in [0,
// below) already and are counted in `peaks`. The places of a buffer become its slots; buffers that change their
// slots alike share a class.
absl::Status PlaceMicrobatches(const PassingBuffers& passing, int64_t below, const PlacementEffort& effort,
                               RankMemory& memory);

}  // namespace pipec
