#include "compiler/ops/low_rank.h"

#include "absl/container/flat_hash_set.h"

namespace pipec {
namespace {

// The value of which this is a cast (--precision), or what was sent from another stage.
Value* Uncast(Value* value) {
  while (value && value->producer()) {
    const Node& node = *value->producer();
    if (node.Is("Message", kPipecDomain)) {
      value = node.input(value->output_index());
    } else if (node.Is("Cast")) {
      value = node.input(0);
    } else {
      break;
    }
  }
  return value;
}

}  // namespace

std::vector<LowRank> FindLowRank(const Graph& graph) {
  std::vector<LowRank> found;
  absl::flat_hash_set<std::string> seen;
  for (const Node* node = graph.first_node(); node; node = node->next()) {
    // The second product, which reads the first one's result.
    const Value* between = Uncast(node->input(0));
    const Node* inner = between ? between->producer() : nullptr;
    if (!node->attributes.Has(kLowRankOf) || !inner || !inner->attributes.Has(kLowRankOf)) continue;
    const std::string name = node->attributes.String(kLowRankOf);
    if (!seen.insert(name).second) continue;
    found.push_back({graph.FindValue(name), Uncast(inner->input(1)), Uncast(node->input(1)),
                     node->attributes.Int("transposed") != 0});
  }
  return found;
}

}  // namespace pipec
