#include "compiler/schedule/interleaved_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/base/counted.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

int Rounds(int ranks, int microbatches) { return std::max(1, microbatches / ranks); }

bool Divides(int ranks, int microbatches) { return microbatches % Rounds(ranks, microbatches) == 0; }

absl::Status CheckMicrobatches(absl::string_view name, const ScheduleShape& shape) {
  const int P = shape.ranks, M = shape.microbatches;
  if (Divides(P, M)) return absl::OkStatus();
  int below = M, above = M;
  while (!Divides(P, below)) --below;
  while (!Divides(P, above)) ++above;
  return absl::InvalidArgumentError(
      absl::StrCat("schedule ", name, " cannot take ", Counted(M, "microbatch", "microbatches"), " on ",
                   Counted(P, "rank", "ranks"), ": they go through in ", Rounds(P, M),
                   " rounds of equal size; the nearest numbers that work are ", below, " and ", above));
}

}  // namespace

absl::StatusOr<InterleavedTable> MakeInterleavedTable(absl::string_view name, const ScheduleShape& shape) {
  // One stage a rank goes through in the order of the microbatches, whatever the group.
  if (shape.virtual_stages > 1) RETURN_IF_ERROR(CheckMicrobatches(name, shape));
  const int M = shape.microbatches;
  InterleavedTable table;
  table.group = shape.virtual_stages > 1 ? M / Rounds(shape.ranks, M) : M;
  for (int first = 0; first < M; first += table.group) {
    for (int c = 0; c < shape.virtual_stages; ++c) {
      for (int m = first; m < first + table.group; ++m) table.entries.push_back({c, m});
    }
  }
  return table;
}

}  // namespace pipec
