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
  // `can_remake`: costs may have something that can be made again.
  StageFit(const StageRules& rules, bool can_remake);

  // Of the stages of a bit set, which is not empty: the first and the last class, and the speed of the fastest in
  // between.
  struct Classes {
    int first = 0, last = 0;
    double fastest = 0;
  };
  Classes ClassesOf(const uint64_t* stages) const;
  // Whether the cap of some of these classes is not exceeded; no longer, once all are, while the segment grows.
  bool SomeHas(const Classes& of, const HeldBytes& bytes) const;
  // Among stages of these classes those that take no longer than `limit`, what they make again counted, as a bit
  // set (others may be in it too); nullptr: none. Valid until the next call. `next` becomes the least seconds of
  // those that take longer, if that is less.
  const uint64_t* Within(const Classes& of, const StageCost& cost, double limit, double& next) const;
  // Of one stage; infinity if its cap is exceeded.
  double Seconds(int stage, const StageCost& cost) const { return Seconds(classes_[class_of_[stage]], cost); }

 private:
  // Stages that are alike.
  struct StageClass {
    Copies copies;
    int64_t cap = 0;
    double speed = 1;
  };
  double Seconds(const StageClass& kind, const StageCost& cost) const;

  const bool can_remake_;
  bool nested_ = true;               // no class is better than those after it
  std::vector<StageClass> classes_;  // distinct
  std::vector<int> class_of_;        // by stage
  StageSets members_;                // [k]: stages of class k; if nested, of that and all later ones
  mutable StageSets found_;          // what Within returns, if not nested
};

}  // namespace pipec
