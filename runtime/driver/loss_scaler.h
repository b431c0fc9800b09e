// Dynamic loss scaling, as torch.amp.GradScaler with its defaults: the scale is halved after a step whose
// gradients overflowed, which updates nothing, and doubled after 2000 steps in a row that did not.
#pragma once

#include <cstdint>

namespace pipec {

class LossScaler {
 public:
  // Powers of two, so that scaling rounds nothing.
  static constexpr double kFirst = 65536, kGrowth = 2, kBackoff = 0.5;
  static constexpr int64_t kGrowthInterval = 2000;
  // Below it no overflow is the scale's fault: what is not finite would be so at any scale.
  static constexpr double kLeast = 1e-4;

  // Of the next step.
  double scale() const { return scale_; }
  int64_t skipped_steps() const { return skipped_; }
  bool exhausted() const { return scale_ < kLeast; }

  // After a step: whether its gradients held NaN or infinity.
  void Update(bool overflow) {
    if (overflow) {
      scale_ *= kBackoff;
      in_a_row_ = 0;
      ++skipped_;
    } else if (++in_a_row_ == kGrowthInterval) {
      scale_ *= kGrowth;
      in_a_row_ = 0;
    }
  }

 private:
  double scale_ = kFirst;
  int64_t in_a_row_ = 0;  // steps without overflow
  int64_t skipped_ = 0;
};

}  // namespace pipec
