#include "compiler/ops/low_rank.h"

#include "absl/container/flat_hash_set.h"

namespace pipec {

std::vector<LowRank> FindLowRank(const Graph& graph) {
  std::vector<LowRank> found;
  absl::flat_hash_set<std::string> seen;
  for (const Node* node = graph.first_node(); node; node = node->next()) {
    // The second product, which reads the first one's result.
    const Node* inner = node->input(0) ? node->input(0)->producer() : nullptr;
    if (!node->attributes.Has(kLowRankOf) || !inner || !inner->attributes.Has(kLowRankOf)) continue;
    const std::string name = node->attributes.String(kLowRankOf);
    if (!seen.insert(name).second) continue;
    found.push_back(
        {graph.FindValue(name), inner->input(1), node->input(1), node->attributes.Int("transposed") != 0});
  }
  return found;
}

}  // namespace pipec
