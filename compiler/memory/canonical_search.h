// Depth-first search for a layout within a capacity (M. Moffitt, "MiniMalloc: A Lightweight Memory Allocator for
// Hardware-Accelerated Machine Learning", ASPLOS 2023).
//
// Items are placed upwards: each at its lowest place on what was placed before, none below the one before it
// (canonical order; equal offsets by rank). An item is no candidate if another could still go below it (dominance). A
// branch ends where at some time the lowest place left and the bytes still to come exceed the capacity; items that no
// longer share any time are solved apart.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "compiler/memory/layout.h"

namespace pipec {

class CanonicalSearch {
 public:
  enum class Outcome : uint8_t { kFound, kNone, kGaveUp };

  // Items are live and not empty; at most kMostItems.
  explicit CanonicalSearch(absl::Span<const MemoryItem> items);
  static constexpr size_t kMostItems = 2000;

  // Among candidates at one offset the one with the lowest rank goes first; `ranks` is a permutation. With `jump` a
  // failure goes back to the last placement that had a part in it, past others that could have changed it only by
  // another order: faster where there is a layout, but finding none says nothing, so kNone comes out as kGaveUp. Gives
  // up after `steps` looks at an item.
  Outcome Run(int64_t capacity, absl::Span<const int> ranks, bool jump, int64_t steps);

  // Of the last Run that found a layout.
  const std::vector<int64_t>& offsets() const { return placed_at_; }
  // Looks of the last Run.
  int64_t steps() const { return steps_; }

  // Bytes of the fullest time at which an item is live, and over how many of the times between two changes it lives.
  int64_t fullest(int i) const { return fullest_[i]; }
  int sections(int i) const { return upper_[i] - lower_[i]; }

 private:
  using ItemSet = std::vector<uint64_t>;  // a bit an item
  struct Raised {
    int item;
    int64_t from;
  };
  // Items still to be placed that share time with each other directly or by way of others: pool_[begin, end).
  struct Part {
    size_t begin, end;
  };
  // The last placement: the next ones do not lie below it.
  struct Last {
    int64_t offset = 0;
    int rank = -1, item = -1;
  };

  void Reset();
  Outcome Solve(Part part, Last last, ItemSet& conflict);
  // Places an item of `part`, solves the rest; takes all of it back unless that succeeds.
  Outcome Try(int item, Part part, Last last, ItemSet& conflict);
  // Whether placing the item left no item that lives across some time.
  bool Place(int item, int64_t offset);
  void TakeBack(size_t placed, size_t raised);
  std::vector<Part> Split(Part rest);
  // Whether nothing says that the part does not fit.
  bool MayFit(Part part, Last last, ItemSet& conflict);
  // Adds a placement because of which `item` does not lie below `offset`.
  void Blame(int item, int64_t offset, Last last, ItemSet& conflict) const;
  bool SameTime(int a, int b) const { return lower_[a] < upper_[b] && lower_[b] < upper_[a]; }

  std::vector<int> lower_, upper_;  // in sections: times between two changes of what is live
  std::vector<int64_t> size_;
  std::vector<std::vector<int>> neighbours_;  // what shares time with an item
  std::vector<int64_t> fullest_;

  int64_t capacity_ = 0, limit_ = 0, steps_ = 0;
  bool jump_ = false;
  absl::Span<const int> ranks_;
  std::vector<int64_t> lowest_;         // by item: where it can go at the lowest
  std::vector<char> is_placed_;         // by item
  std::vector<int64_t> placed_at_;      // by item
  std::vector<int> placed_;             // in this order
  std::vector<Raised> raised_;          // changes of lowest_
  std::vector<int64_t> to_come_;        // by section: bytes of what is not placed
  std::vector<int> crossing_;           // by section: items not placed that live in it and in the one before
  std::vector<int64_t> section_floor_;  // scratch of MayFit
  std::vector<int> pool_;
};

}  // namespace pipec
