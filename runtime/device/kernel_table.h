// Which op a device has a kernel for, and how that is prepared. A file of kernels ends with a function
//   void RegisterXxxKernels(KernelRegistry& registry)
// which the device's kernels/register.* calls; nothing registers itself behind the linker's back.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace pipec {

// Prepare: a pointer to the device's function that makes a Kernel from a KernelSpec.
template <typename Prepare>
class KernelTable {
 public:
  // `adds`: takes the attribute `accumulate` (operands/sums.h).
  void Add(absl::string_view op, absl::string_view domain, Prepare prepare, bool adds = false) {
    rows_.push_back({std::string(op), std::string(domain), prepare, adds});
  }
  // Null if there is none.
  Prepare Find(absl::string_view op, absl::string_view domain) const {
    for (const Row& row : rows_) {
      if (op == row.op && domain == row.domain) return row.prepare;
    }
    return nullptr;
  }
  bool Adds(absl::string_view op, absl::string_view domain) const {
    return std::any_of(rows_.begin(), rows_.end(),
                       [&](const Row& row) { return op == row.op && domain == row.domain && row.adds; });
  }
  // (domain, op), sorted; those that add only, if so asked.
  std::vector<std::pair<std::string, std::string>> Names(bool adding = false) const {
    std::vector<std::pair<std::string, std::string>> names;
    for (const Row& row : rows_) {
      if (row.adds || !adding) names.emplace_back(row.domain, row.op);
    }
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  struct Row {
    std::string op, domain;
    Prepare prepare;
    bool adds;
  };
  std::vector<Row> rows_;
};

}  // namespace pipec
