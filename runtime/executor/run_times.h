// How long something takes, from many runs of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace pipec {

class RunTimes {
 public:
  // The first kept run allocates room for all that are kept.
  void Add(double seconds) {
    constexpr size_t kKept = 256;
    ++runs_;
    if (latest_.empty()) latest_.reserve(kKept);
    if (latest_.size() < kKept) {
      latest_.push_back(static_cast<float>(seconds));
    } else {
      latest_[next_++ % kKept] = static_cast<float>(seconds);
    }
  }
  // What was warm-up counts as runs, but not for their time.
  void Forget() { latest_.clear(); }

  int64_t runs() const { return runs_; }
  // Seconds: the mean of the middle half of the latest runs, so that neither a rare interruption nor the grain of the
  // clock counts. 0 if there are none.
  double Typical() const {
    if (latest_.empty()) return 0;
    std::vector<float> sorted = latest_;
    std::sort(sorted.begin(), sorted.end());
    const size_t quarter = sorted.size() / 4;
    double sum = 0;
    for (size_t k = quarter; k < sorted.size() - quarter; ++k) sum += sorted[k];
    return sum / static_cast<double>(sorted.size() - 2 * quarter);
  }

 private:
  int64_t runs_ = 0;
  size_t next_ = 0;
  std::vector<float> latest_;
};

}  // namespace pipec
