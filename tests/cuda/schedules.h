// Every schedule that trains, and what it asks of a plan of a small model, at 2 and at 4 ranks.
#pragma once

namespace pipec {

struct ScheduleCase {
  const char *name, *flags;
  bool synchronous = true;  // the numbers of one rank
};

inline constexpr ScheduleCase kSchedules[] = {
    {"gpipe", "--microbatches=4"},
    {"1f1b", "--microbatches=4"},
    {"eager-1f1b", "--microbatches=4"},
    {"looped-bfs", "--microbatches=4"},
    {"interleaved", "--microbatches=4"},
    {"zb-h1", "--microbatches=4"},
    {"zb-h2", "--microbatches=4"},
    {"zb-v", "--microbatches=4"},
    {"v-half", "--microbatches=4"},
    {"v-min", "--microbatches=4"},
    {"dualpipe-v", "--microbatches=8"},
    {"pipedream", "--microbatches=1", false},
    {"pipedream-2bw", "--microbatches=4", false},
};

}  // namespace pipec
