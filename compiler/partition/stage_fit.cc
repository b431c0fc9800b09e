#include "compiler/partition/stage_fit.h"

#include <algorithm>

namespace pipec {

StageFit::StageFit(const StageRules& rules)
    : speeds_(rules.speed),
      as_fast_(rules.stages(), rules.stages()),
      of_class_(rules.stages(), rules.stages()),
      any_(1, rules.stages()) {
  const int S = rules.stages();
  std::sort(speeds_.begin(), speeds_.end());
  speeds_.erase(std::unique(speeds_.begin(), speeds_.end()), speeds_.end());
  for (int k = 0; k < static_cast<int>(speeds_.size()); ++k) {
    slowness_.push_back(1 / speeds_[k]);
    for (int s = 0; s < S; ++s) {
      if (rules.speed[s] >= speeds_[k]) as_fast_.Insert(k, s);
    }
  }
  for (int s = 0; s < S; ++s) {
    unlimited_ &= rules.cap[s] == kNoCap;
    equal_caps_ &= rules.cap[s] == rules.cap[0];
    classes_.push_back({rules.in_flight[s], rules.cap[s]});
  }
  const auto order = [](const MemoryClass& a, const MemoryClass& b) {
    return a.in_flight != b.in_flight ? a.in_flight > b.in_flight : a.cap < b.cap;
  };
  const auto same = [](const MemoryClass& a, const MemoryClass& b) {
    return a.in_flight == b.in_flight && a.cap == b.cap;
  };
  std::sort(classes_.begin(), classes_.end(), order);
  classes_.erase(std::unique(classes_.begin(), classes_.end(), same), classes_.end());
  for (int k = 0; k < static_cast<int>(classes_.size()); ++k) {
    for (int s = 0; s < S; ++s) {
      const MemoryClass stage{rules.in_flight[s], rules.cap[s]};
      if (same(stage, classes_[k]) || (equal_caps_ && order(classes_[k], stage))) of_class_.Insert(k, s);
    }
  }
}

const uint64_t* StageFit::Time(double compute, double messages, double limit, double& next) const {
  for (int k = 0; k < static_cast<int>(speeds_.size()); ++k) {
    const double seconds = compute * slowness_[k] + messages;
    if (seconds <= limit * kCostSlack) return as_fast_[k];
    next = std::min(next, seconds);
  }
  return nullptr;
}

bool StageFit::Fits(const MemoryClass& kind, int64_t parameter_bytes, int64_t activation_bytes) const {
  return BytesOf(parameter_bytes, activation_bytes, kind.in_flight) <= static_cast<double>(kind.cap);
}

const uint64_t* StageFit::Any(int64_t parameter_bytes, int64_t activation_bytes) const {
  any_.Clear();
  bool some = false;
  for (int k = 0; k < static_cast<int>(classes_.size()); ++k) {
    if (!Fits(classes_[k], parameter_bytes, activation_bytes)) continue;
    some = true;
    for (int w = 0; w < any_.words(); ++w) any_[0][w] |= of_class_[k][w];
  }
  return some ? any_[0] : nullptr;
}

const uint64_t* StageFit::Memory(int64_t parameter_bytes, int64_t activation_bytes) const {
  return Growing(*this).Memory(parameter_bytes, activation_bytes);
}

const uint64_t* StageFit::Growing::Memory(int64_t parameter_bytes, int64_t activation_bytes) {
  if (fit_.unlimited_) return fit_.of_class_[0];
  if (!fit_.equal_caps_) return fit_.Any(parameter_bytes, activation_bytes);
  const int classes = static_cast<int>(fit_.classes_.size());
  while (first_ < classes && !fit_.Fits(fit_.classes_[first_], parameter_bytes, activation_bytes)) ++first_;
  return first_ < classes ? fit_.of_class_[first_] : nullptr;
}

}  // namespace pipec
