// Items of the partition problem that stay together.
#pragma once

#include <vector>

#include "compiler/partition/problem.h"

namespace pipec {

struct ItemRuns {
  explicit ItemRuns(const PartitionProblem& problem) {
    const int items = static_cast<int>(problem.items.size());
    for (int i = 0; i < items; ++i) {
      if (i == 0 || !problem.items[i].glued_to_previous) begin.push_back(i);
      run_of.push_back(static_cast<int>(begin.size()) - 1);
    }
    begin.push_back(items);
  }
  int size() const { return static_cast<int>(begin.size()) - 1; }

  std::vector<int> run_of;  // by item
  std::vector<int> begin;   // by run: its first item; and the end
};

}  // namespace pipec
