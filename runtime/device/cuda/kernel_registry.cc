#include "runtime/device/cuda/kernel_registry.h"

#include <algorithm>

namespace pipec::cuda {

void KernelRegistry::Add(absl::string_view op, absl::string_view domain, PrepareFunction prepare) {
  rows_.push_back({std::string(op), std::string(domain), prepare});
}

PrepareFunction KernelRegistry::Find(absl::string_view op, absl::string_view domain) const {
  for (const Row& row : rows_) {
    if (op == row.op && domain == row.domain) return row.prepare;
  }
  return nullptr;
}

std::vector<std::pair<std::string, std::string>> KernelRegistry::Names() const {
  std::vector<std::pair<std::string, std::string>> names;
  for (const Row& row : rows_) names.emplace_back(row.domain, row.op);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace pipec::cuda
