#include "tests/bench/gpu_trace.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace pipec::bench {

std::optional<double> IdleShare(const std::string& csv) {
  std::vector<std::pair<int64_t, int64_t>> spans;  // begin, end
  bool table = false;
  for (const absl::string_view line : absl::StrSplit(csv, '\n')) {
    // Begin and duration come first, a name, which may hold commas, last.
    const std::pair<absl::string_view, absl::string_view> begin =
        absl::StrSplit(line, absl::MaxSplits(',', 1));
    const std::pair<absl::string_view, absl::string_view> rest =
        absl::StrSplit(begin.second, absl::MaxSplits(',', 1));
    if (!table) {
      table = absl::StartsWith(begin.first, "Start (") && absl::StartsWith(rest.first, "Duration (");
      continue;
    }
    int64_t start, duration;
    if (absl::SimpleAtoi(begin.first, &start) && absl::SimpleAtoi(rest.first, &duration))
      spans.emplace_back(start, start + duration);
  }
  std::sort(spans.begin(), spans.end());
  spans.erase(spans.begin(), spans.begin() + static_cast<int64_t>(spans.size() / 2));
  if (spans.size() < 2) return std::nullopt;
  int64_t idle = 0, end = spans[0].second;
  for (const auto& [start, stop] : spans) {
    idle += std::max<int64_t>(0, start - end);
    end = std::max(end, stop);
  }
  return static_cast<double>(idle) / static_cast<double>(end - spans[0].first);
}

}  // namespace pipec::bench
