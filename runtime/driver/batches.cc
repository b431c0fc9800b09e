#include "runtime/driver/batches.h"

#include <algorithm>

#include "runtime/data/sample_order.h"

namespace pipec {

void TrainingBatches::Fill(int64_t step, absl::Span<int64_t> batch) const {
  const SampleOrder order(samples_, shuffle_, seed_, step / steps_per_epoch());
  const int64_t first = step % steps_per_epoch() * batch_;
  for (size_t i = 0; i < batch.size(); ++i) batch[i] = order.At(first + static_cast<int64_t>(i));
}

int64_t FillInOrder(int64_t samples, int64_t step, absl::Span<int64_t> batch) {
  const int64_t first = step * static_cast<int64_t>(batch.size());
  for (size_t i = 0; i < batch.size(); ++i) {
    const int64_t sample = first + static_cast<int64_t>(i);
    batch[i] = sample < samples ? sample : -1;
  }
  return std::clamp<int64_t>(samples - first, 0, static_cast<int64_t>(batch.size()));
}

}  // namespace pipec
