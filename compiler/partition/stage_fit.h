// Which stages may hold a segment, by its seconds and its bytes.
#pragma once

#include <vector>

#include "compiler/partition/blocks.h"
#include "compiler/partition/stage_rules.h"
#include "compiler/partition/stage_sets.h"

namespace pipec {

// Sums of the same numbers in another order differ by rounding: costs this close are equal.
constexpr double kCostSlack = 1 + 1e-12;

class StageFit {
 public:
  explicit StageFit(const StageRules& rules);

  // Stages for which compute / speed + messages is within `limit`, as a bit set; nullptr: none. `next` becomes
  // the least seconds of those for which it is not, if that is less.
  const uint64_t* Time(double compute, double messages, double limit, double& next) const;
  // Stages whose cap is not exceeded; nullptr: none.
  const uint64_t* Memory(int64_t parameter_bytes, int64_t activation_bytes) const;
  double fastest() const { return speeds_.back(); }

  // As Memory, for one segment while it grows.
  class Growing {
   public:
    explicit Growing(const StageFit& fit) : fit_(fit), first_(0) {}
    const uint64_t* Memory(int64_t parameter_bytes, int64_t activation_bytes);

   private:
    const StageFit& fit_;
    int first_;
  };

 private:
  struct MemoryClass {
    int in_flight = 0;
    int64_t cap = 0;
  };
  bool Fits(const MemoryClass& kind, int64_t parameter_bytes, int64_t activation_bytes) const;
  const uint64_t* Any(int64_t parameter_bytes, int64_t activation_bytes) const;

  bool unlimited_ = true, equal_caps_ = true;
  std::vector<double> speeds_;        // distinct, ascending
  std::vector<double> slowness_;      // 1 / speeds_
  StageSets as_fast_;                 // [k]: stages at least as fast as speeds_[k]
  std::vector<MemoryClass> classes_;  // distinct; if caps are equal, the most in flight first
  StageSets of_class_;     // [k]: stages of that class; if caps are equal, of that and all later ones
  mutable StageSets any_;  // what Any returns
};

}  // namespace pipec
