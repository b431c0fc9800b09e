// The order in which interleaved schedules go through the stages of a rank: in groups of microbatches.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/schedule/schedule.h"

namespace pipec {

// The k-th forward of every rank: which of its stages, which microbatch. Backwards go the same way from the last stage.
struct InterleavedEntry {
  int local_stage;
  int microbatch;
};

struct InterleavedTable {
  int group = 1;                          // microbatches that go through one stage before the next
  std::vector<InterleavedEntry> entries;  // V x M
};

// InvalidArgument, for the schedule `name`, if M microbatches cannot go through in max(1, M/P) rounds of equal size.
absl::StatusOr<InterleavedTable> MakeInterleavedTable(absl::string_view name, const ScheduleShape& shape);

}  // namespace pipec
