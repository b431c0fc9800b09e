#include "compiler/partition/least_cap.h"

#include <algorithm>

namespace pipec {
namespace {

// Bytes of blocks [begin, end), moved along by either end.
class Window {
 public:
  Window(const Blocks& blocks, const Copies& copies)
      : blocks_(blocks), copies_(copies), holders_(blocks.shared_groups) {}

  int begin() const { return begin_; }
  int end() const { return end_; }
  double bytes() const { return BytesOf(bytes_, copies_); }

  void GrowEnd() { Grow(end_++); }
  void ShrinkEnd() { Shrink(--end_); }
  // Moves on past block begin().
  void ShrinkBegin() {
    if (begin_ == end_) {
      ++end_;
    } else {
      Shrink(begin_);
    }
    ++begin_;
  }

 private:
  void Grow(int block) {
    bytes_ += blocks_.blocks[block].bytes;
    for (const SharedUse& use : blocks_.shared[block]) {
      if (holders_[use.group]++ == 0) bytes_ += use.bytes;
    }
  }
  void Shrink(int block) {
    bytes_ -= blocks_.blocks[block].bytes;
    for (const SharedUse& use : blocks_.shared[block]) {
      if (--holders_[use.group] == 0) bytes_ -= use.bytes;
    }
  }

  const Blocks& blocks_;
  const Copies copies_;
  std::vector<int> holders_;  // by shared parameter: blocks of the window that hold it
  int begin_ = 0, end_ = 0;
  HeldBytes bytes_;
};

}  // namespace

bool FitsStageCaps(const Blocks& blocks, const StageRules& rules) {
  const int n = blocks.size();
  std::vector<char> reached(n + 1, 0), next(n + 1, 0);  // places where a stage may end
  reached[0] = 1;
  for (int s = 0; s < rules.stages(); ++s) {
    std::fill(next.begin(), next.end(), 0);
    Window window(blocks, rules.copies[s]);
    const double cap = static_cast<double>(rules.cap[s]);
    int marked = 0;
    for (int i = 0; i < n; ++i, window.ShrinkBegin()) {
      if (!reached[i]) continue;
      while (window.end() < n) {
        window.GrowEnd();
        if (window.bytes() <= cap) continue;
        window.ShrinkEnd();
        break;
      }
      for (marked = std::max(marked, i); marked < window.end(); ++marked) next[marked + 1] = 1;
    }
    reached.swap(next);
  }
  return reached[n];
}

int64_t LeastStageCap(const Blocks& blocks, StageRules rules) {
  const auto fits = [&](int64_t cap) {
    std::fill(rules.cap.begin(), rules.cap.end(), cap);
    return FitsStageCaps(blocks, rules);
  };
  int64_t low = -1, high = 1;  // too little; perhaps enough
  while (!fits(high)) {
    low = high;
    high *= 2;
  }
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (fits(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace pipec
