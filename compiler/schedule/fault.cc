#include "compiler/schedule/fault.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace pipec {
namespace {

constexpr int kNeighbours = 6;   // actions on each side of the place
constexpr int kRanksAround = 8;  // on each side of the marked ranks

// Of the compute action at the place, or of the next one behind it; 0 if there is none, or no file.
int CellOf(const Schedule& schedule, PlaceInSchedule place) {
  if (schedule.cells.empty()) return 0;
  const std::vector<Action>& list = schedule.ranks[place.rank];
  const auto end = list.begin() + std::min(place.position, static_cast<int>(list.size()));
  const size_t before = std::count_if(list.begin(), end, [](const Action& a) { return IsCompute(a.kind); });
  const std::vector<int>& cells = schedule.cells[place.rank];
  return before < cells.size() ? cells[before] : 0;
}

}  // namespace

std::string NameOf(const Schedule& schedule, PlaceInSchedule place) {
  const std::vector<Action>& list = schedule.ranks[place.rank];
  std::string text = absl::StrCat("rank ", place.rank, ", position ", place.position);
  if (place.position < static_cast<int>(list.size()))
    absl::StrAppend(&text, ", ", ToString(list[place.position]));
  if (const int cell = CellOf(schedule, place))
    absl::StrAppend(&text, " (line ", place.rank + 1, ", cell ", cell, ")");
  return text;
}

std::string GridAround(const Schedule& schedule, absl::Span<const PlaceInSchedule> marks) {
  const int ranks = static_cast<int>(schedule.ranks.size());
  std::vector<int> marked(ranks, -1);
  int first_rank = ranks, last_rank = -1;
  for (const PlaceInSchedule& mark : marks) {
    marked[mark.rank] = mark.position;
    first_rank = std::min(first_rank, mark.rank);
    last_rank = std::max(last_rank, mark.rank);
  }
  first_rank = std::max(0, first_rank - kRanksAround);
  last_rank = std::min({ranks - 1, last_rank + kRanksAround, first_rank + 4 * kRanksAround});
  std::vector<std::vector<std::string>> rows;
  size_t width = 0;
  for (int r = first_rank; r <= last_rank; ++r) {
    const std::vector<Action>& list = schedule.ranks[r];
    const int end = static_cast<int>(list.size()), centre = marked[r] >= 0 ? marked[r] : marks[0].position;
    std::vector<std::string>& row = rows.emplace_back();
    for (int k = centre - kNeighbours - 1; k <= centre + kNeighbours + 1; ++k) {
      const bool cut = std::abs(k - centre) > kNeighbours;
      std::string text;
      if (k >= 0 && k < end) text = cut ? "..." : ToString(list[k]);
      if (k == end && k == marked[r]) text = "end";
      row.push_back(k >= 0 && k == marked[r] ? absl::StrCat(">", text, "<") : absl::StrCat(" ", text, " "));
      width = std::max(width, row.back().size());
    }
    while (!row.empty() && row.back() == "  ") row.pop_back();
  }
  // Columns before the place that are empty in every line.
  size_t skip = 0;
  while (std::all_of(rows.begin(), rows.end(),
                     [skip](const auto& row) { return skip < row.size() && row[skip] == "  "; })) {
    ++skip;
  }
  std::string text;
  for (int r = first_rank; r <= last_rank; ++r) {
    std::string line = absl::StrFormat("\n  rank %d:%*s", r, r < 10 && last_rank >= 10 ? 2 : 1, "");
    const std::vector<std::string>& row = rows[r - first_rank];
    for (size_t k = skip; k < row.size(); ++k)
      absl::StrAppendFormat(&line, "%-*s", static_cast<int>(width), row[k]);
    absl::StrAppend(&text, line.substr(0, line.find_last_not_of(' ') + 1));
  }
  return text;
}

absl::Status Fault(const Schedule& schedule, PlaceInSchedule place, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("schedule ", schedule.name, ": ", NameOf(schedule, place),
                                                 ": ", what, GridAround(schedule, {place})));
}

}  // namespace pipec
