#include "compiler/ir/once_a_step.h"

namespace pipec {

bool RunsOnceAStep(const RankMemory& memory, const Node& node) {
  if (node.kind != Kind::kF) return false;
  for (const Value* output : node.outputs()) {
    if (output && !IsOnceAStep(memory.buffers[memory.locations.at(output).buffer])) return false;
  }
  return !node.outputs().empty();
}

}  // namespace pipec
