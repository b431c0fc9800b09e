#include "compiler/ir/module.h"

namespace pipec {

absl::string_view Name(Level level) {
  constexpr absl::string_view kNames[] = {"model", "training", "staged", "scheduled", "planned"};
  return kNames[static_cast<int>(level)];
}

absl::string_view Name(BufferKind kind) {
  constexpr absl::string_view kNames[] = {"parameter", "gradient",  "optimizer state", "activation", "message",
                                          "transient", "input",     "output",          "constant"};
  return kNames[static_cast<int>(kind)];
}

std::vector<int> StagesOfRank(const Module& module, int rank) {
  std::vector<int> stages;
  for (int s = 0; s < module.stages.size(); ++s) {
    if (module.stages[s].rank == rank) stages.push_back(s);
  }
  return stages;
}

}  // namespace pipec
