// Tells the ops that draw random numbers, Dropout apart, by what: the node's key, and where the samples lie.
//   before:   y = RandomNormalLike(x)
//   after:    y = RandomNormalLike<key, batch_axis, samples>(x)
// So what is drawn depends on seed, step, sample, node and element, and neither on the cut nor on the
// microbatch. ONNX's attribute seed is left aside: the run's seed decides. Level model; after the batch axis,
// which it writes down.
#include <string>

#include "absl/container/flat_hash_set.h"
#include "passes/passes.h"
#include "passes/stable_hash.h"

namespace pipec {
namespace {

bool Draws(const Node& node) {
  for (const char* op :
       {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Multinomial"}) {
    if (node.Is(op)) return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<bool> KeyRandom(Module& module, const PassContext&) {
  absl::flat_hash_set<uint32_t> keys;
  bool changed = false;
  for (Node* node : module.graph.Nodes()) {
    if (!Draws(*node)) continue;
    uint32_t key = StableHash(node->name());
    while (!keys.insert(key).second) ++key;
    node->attributes.Set("key", static_cast<int64_t>(key));
    node->attributes.Set("batch_axis", static_cast<int64_t>(node->output(0)->batch_axis));
    if (node->output(0)->batch_axis >= 0) node->attributes.Set("samples", module.microbatch_size);
    changed = true;
  }
  return changed;
}

}  // namespace pipec
