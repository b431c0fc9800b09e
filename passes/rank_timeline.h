// When what a rank holds is live, on an axis made of its list of actions.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "passes/storage_use.h"

namespace pipec {

// [lower, upper) of the axis.
struct Life {
  int64_t lower = 0;
  int64_t upper = 0;
  bool live() const { return lower < upper; }
};

// Every action takes as much time as its program has instructions, one if it has none. What an instruction reads or
// writes is live while it runs. Beyond its instructions
//  - an input is live from the beginning of the first action that needs it,
//  - what is received from the beginning of the action that posts the receive,
//  - what is sent until its message has arrived in modelled time: to the end of the last computation that begins
//    before; where
//    times are not known, to the end of the action that sends it,
//  - an output to the end of the last action that touches it.
class RankTimeline {
 public:
  // `simulated`: of the list, or nothing if its times are not known.
  RankTimeline(const std::vector<Program>& programs, const std::vector<Action>& list,
               absl::Span<const SimulatedAction> simulated, int microbatches);

  int64_t end() const { return starts_.back(); }
  // By microbatch; not live where the list has none of the actions that touch it.
  std::vector<Life> OfMicrobatches(const Storage& storage) const;
  // Of what happens once a step: what is received is there from the exchange on, what is sent and what is read
  // afterwards to the end of the list.
  Life OfStep(const Storage& storage) const;

 private:
  int PositionOf(const ActionOf& action, int microbatch) const;

  const std::vector<Program>& programs_;
  const int microbatches_;
  std::vector<int64_t> starts_;   // by action, and the end
  std::vector<int64_t> arrived_;  // by action: of a send, when its message has arrived
  absl::flat_hash_map<ActionOf, std::vector<int>>
      positions_;  // by microbatch, or one of what happens once a step; -1: none
  // Of a program in a microbatch, or once a step.
  struct Run {
    int64_t action = -1;  // when its action begins; -1: it does not run
    int64_t first = 0;    // when its first instruction runs
  };
  std::vector<std::vector<Run>> runs_;  // by program
  int64_t exchange_;                    // when the first REDUCE_TIED or NORM begins
};

}  // namespace pipec
