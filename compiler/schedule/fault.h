// How a refusal of a schedule is told: where, what, and the grid of the ranks' lists with the place marked.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler/schedule/schedule.h"

namespace pipec {

struct PlaceInSchedule {
  int rank;
  int position;  // in the rank's list; its length: behind the last
};

// "rank 1, position 4, 1B0"; of a schedule from a file "rank 1, position 4, 1B0 (line 2, cell 5)": both from 1.
std::string NameOf(const Schedule& schedule, PlaceInSchedule place);

// One line a rank, the ranks around the marked ones; in every line the actions around the place that is marked in
// it, or around that of the first mark, so that marked ones stand below each other:
//
//   rank 0:  0F1   0F2   0F3   0B0   0B1
//   rank 1:  1F0   1F1  >1B1<  1B0   ...
//
// Starts with a line break. At most one mark a rank.
std::string GridAround(const Schedule& schedule, absl::Span<const PlaceInSchedule> marks);

// InvalidArgument: the schedule's name, the place, what is wrong there, the grid.
absl::Status Fault(const Schedule& schedule, PlaceInSchedule place, absl::string_view what);

}  // namespace pipec
