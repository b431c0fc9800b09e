#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "compiler/report/report.h"

namespace pipec {
namespace {

// A thread of the trace: slices of one thread must nest, and messages between different stages overlap.
std::string LaneOf(const Action& action) {
  if (action.kind == ActionKind::kReduceGrad) return "sum over replicas";
  if (!IsMessage(action.kind)) return "compute";
  const bool sends = action.kind == ActionKind::kSendF || action.kind == ActionKind::kSendB;
  return sends ? absl::StrCat("send ", action.stage, " to ", action.peer_stage)
               : absl::StrCat("receive ", action.peer_stage, " to ", action.stage);
}

nlohmann::json Metadata(const char* what, int pid, int tid, const std::string& name) {
  return {{"ph", "M"}, {"name", what}, {"pid", pid}, {"tid", tid}, {"args", {{"name", name}}}};
}

}  // namespace

std::string ModelledTrace(const Module& module) {
  nlohmann::json events = nlohmann::json::array();
  for (int rank = 0; rank < static_cast<int>(module.simulation.ranks.size()); ++rank) {
    events.push_back(Metadata("process_name", rank, 0, absl::StrCat("rank ", rank, " (modelled)")));
    std::map<std::string, int> threads = {{"compute", 0}};
    for (const SimulatedAction& slice : module.simulation.ranks[rank]) {
      const Action& action = slice.action;
      const int tid = threads.emplace(LaneOf(action), threads.size()).first->second;
      events.push_back({{"ph", "X"},
                        {"name", ToString(action)},
                        {"cat", std::string(Name(action.kind))},
                        {"pid", rank},
                        {"tid", tid},
                        {"ts", slice.start * 1e6},
                        {"dur", (slice.end - slice.start) * 1e6},
                        {"args", {{"stage", action.stage}, {"microbatch", action.microbatch}}}});
    }
    for (const auto& [name, tid] : threads) events.push_back(Metadata("thread_name", rank, tid, name));
  }
  return nlohmann::json{{"traceEvents", events}, {"displayTimeUnit", "ms"}}.dump() + "\n";
}

}  // namespace pipec
