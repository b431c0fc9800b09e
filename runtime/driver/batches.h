// Which samples a step uses.
#pragma once

#include <cstdint>

#include "absl/types/span.h"

namespace pipec {

class TrainingBatches {
 public:
  // The incomplete last batch of an epoch is dropped; every epoch has an order of its own if `shuffle`.
  TrainingBatches(int64_t samples, int64_t batch, bool shuffle, uint64_t seed)
      : samples_(samples), batch_(batch), shuffle_(shuffle), seed_(seed) {}

  int64_t steps_per_epoch() const { return samples_ / batch_; }
  // The samples of step `step` (0 for the first of the run), one an entry.
  void Fill(int64_t step, absl::Span<int64_t> batch) const;

 private:
  int64_t samples_, batch_;
  bool shuffle_;
  uint64_t seed_;
};

// Samples [step * batch, ...) in their own order, -1 behind the last. Returns how many are not padding.
int64_t FillInOrder(int64_t samples, int64_t step, absl::Span<int64_t> batch);

}  // namespace pipec
