// Shares nothing with the solver: walks along time, keeping what is live ordered by offset; two neighbours in
// that order are the only ones that can overlap first.
#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "compiler/memory/layout.h"

namespace pipec {

absl::Status CheckLayout(absl::Span<const MemoryItem> items, const MemoryLayout& layout) {
  if (layout.offsets.size() != items.size()) {
    return absl::InternalError(
        absl::StrCat("memory layout has ", layout.offsets.size(), " offsets for ", items.size(), " items"));
  }
  struct Change {
    int64_t time;
    bool starts;  // at one time what ends goes first
    int item;
  };
  std::vector<Change> changes;
  int64_t peak = 0;
  for (int i = 0; i < static_cast<int>(items.size()); ++i) {
    const int64_t offset = layout.offsets[i];
    if (offset < 0 || offset % kBufferAlignment != 0) {
      return absl::InternalError(absl::StrCat("memory layout: item ", i, " at offset ", offset,
                                              ", which is negative or no multiple of ", kBufferAlignment));
    }
    const int64_t end = offset + items[i].size;
    peak = std::max(peak, end + (kBufferAlignment - end % kBufferAlignment) % kBufferAlignment);
    if (items[i].lower < items[i].upper && items[i].size > 0) {
      changes.push_back({items[i].lower, true, i});
      changes.push_back({items[i].upper, false, i});
    }
  }
  if (layout.peak != peak) {
    return absl::InternalError(
        absl::StrCat("memory layout: peak is given as ", layout.peak, ", items end at ", peak));
  }
  std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return std::tuple(a.time, a.starts, a.item) < std::tuple(b.time, b.starts, b.item);
  });
  std::map<int64_t, int> live;  // offset -> item
  for (const Change& change : changes) {
    const int i = change.item;
    const int64_t offset = layout.offsets[i];
    if (!change.starts) {
      live.erase(offset);
      continue;
    }
    auto above = live.lower_bound(offset);
    int other = -1;
    if (above != live.end() && above->first < offset + items[i].size) other = above->second;
    if (other < 0 && above != live.begin()) {
      auto below = std::prev(above);
      if (below->first + items[below->second].size > offset) other = below->second;
    }
    if (other >= 0) {
      return absl::InternalError(
          absl::StrCat("memory layout: items ", other, " and ", i, " are both live at time ", change.time,
                       " and overlap at offsets ", layout.offsets[other], " and ", offset));
    }
    live[offset] = i;
  }
  return absl::OkStatus();
}

}  // namespace pipec
