#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "compiler/report/report.h"

namespace pipec {
namespace {

// Slices of one thread must nest, and messages of different directions overlap.
struct Lane {
  int tid;
  const char* name;
};

Lane LaneOf(ActionKind kind) {
  switch (kind) {
    case ActionKind::kSendF:
      return {1, "send forward"};
    case ActionKind::kSendB:
      return {2, "send backward"};
    case ActionKind::kRecvF:
      return {3, "receive forward"};
    case ActionKind::kRecvB:
      return {4, "receive backward"};
    default:
      return {0, "compute"};
  }
}

nlohmann::json Metadata(const char* what, int pid, int tid, const std::string& name) {
  return {{"ph", "M"}, {"name", what}, {"pid", pid}, {"tid", tid}, {"args", {{"name", name}}}};
}

}  // namespace

std::string ModelledTrace(const Module& module) {
  nlohmann::json events = nlohmann::json::array();
  for (int rank = 0; rank < static_cast<int>(module.simulation.ranks.size()); ++rank) {
    events.push_back(Metadata("process_name", rank, 0, absl::StrCat("rank ", rank, " (modelled)")));
    for (ActionKind kind :
         {ActionKind::kF, ActionKind::kSendF, ActionKind::kSendB, ActionKind::kRecvF, ActionKind::kRecvB}) {
      events.push_back(Metadata("thread_name", rank, LaneOf(kind).tid, LaneOf(kind).name));
    }
    for (const SimulatedAction& slice : module.simulation.ranks[rank]) {
      const Action& action = slice.action;
      events.push_back({{"ph", "X"},
                        {"name", ToString(action)},
                        {"cat", std::string(Name(action.kind))},
                        {"pid", rank},
                        {"tid", LaneOf(action.kind).tid},
                        {"ts", slice.start * 1e6},
                        {"dur", (slice.end - slice.start) * 1e6},
                        {"args", {{"stage", action.stage}, {"microbatch", action.microbatch}}}});
    }
  }
  return nlohmann::json{{"traceEvents", events}, {"displayTimeUnit", "ms"}}.dump() + "\n";
}

}  // namespace pipec
