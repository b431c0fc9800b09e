#include "runtime/driver/trace_file.h"

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "runtime/base/atomic_file.h"
#include "runtime/plan/verify.h"

namespace pipec {
namespace {

using nlohmann::json;
using Microseconds = std::chrono::duration<double, std::micro>;

constexpr const char* kThreads[] = {"compute", "send", "receive"};

int ThreadOf(const plan::Action& action, bool wait) {
  switch (action.kind()) {
    case plan::SEND_F:
    case plan::SEND_B:
      return 1;
    case plan::RECV_F:
    case plan::RECV_B:
      return 2;
    default:
      return wait ? 2 : 0;  // an exchange of norms is posted by the compute line and awaited on the other
  }
}

json Metadata(const char* what, int pid, int tid, const std::string& name) {
  return {{"name", what}, {"ph", "M"}, {"pid", pid}, {"tid", tid}, {"args", {{"name", name}}}};
}

}  // namespace

void TraceFile::Add(Session& session, StepKind kind, int64_t step) {
  if (steps_.size() == kSteps) steps_.pop_front();
  Step& row = steps_.emplace_back(Step{kind, step, {}});
  for (int rank = 0; rank < session.ranks(); ++rank) {
    const absl::Span<const TraceSlice> slices = session.executor(rank).trace();
    row.ranks.emplace_back(slices.begin(), slices.end());
  }
}

absl::Status TraceFile::Write(Session& session, const std::string& path) const {
  json events = json::array();
  for (int rank = 0; rank < session.ranks(); ++rank) {
    events.push_back(Metadata("process_name", rank, 0, session.NameOf(rank)));
    for (int tid = 0; tid < 3; ++tid) events.push_back(Metadata("thread_name", rank, tid, kThreads[tid]));
  }
  auto origin = std::chrono::steady_clock::time_point::max();
  for (const Step& step : steps_) {
    for (const auto& slices : step.ranks) {
      for (const TraceSlice& slice : slices) origin = std::min(origin, slice.begin);
    }
  }
  for (const Step& step : steps_) {
    for (int rank = 0; rank < session.ranks(); ++rank) {
      const plan::RankPlan& rank_plan = session.executor(rank).rank_plan();
      const auto& actions = ActionsOf(rank_plan, step.kind);
      for (const TraceSlice& slice : step.ranks[rank]) {
        const bool wait = slice.awaited >= 0;
        const plan::Action& action = actions[wait ? slice.awaited : slice.action];
        json args = {{"step", step.kind == StepKind::kTrain ? slice.step + 1 : step.step},
                     {"stage", action.stage()},
                     {"microbatch", action.microbatch()}};
        if (ThreadOf(action, /*wait=*/false) != 0) {
          const plan::Message& message = rank_plan.messages(action.messages(0));
          args["from_stage"] = message.from_stage();
          args["to_stage"] = message.to_stage();
        }
        events.push_back({{"name", absl::StrCat(wait ? "wait " : "", ActionName(rank_plan, action))},
                          {"cat", slice.undone ? "undone" : wait ? "wait" : plan::ActionKind_Name(action.kind())},
                          {"ph", "X"},
                          {"ts", Microseconds(slice.begin - origin).count()},
                          {"dur", Microseconds(slice.end - slice.begin).count()},
                          {"pid", rank},
                          {"tid", ThreadOf(action, wait)},
                          {"args", std::move(args)}});
      }
    }
  }
  const json document = {{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}};
  return WriteFileAtomically(path, document.dump(-1, ' ', true, json::error_handler_t::replace));
}

}  // namespace pipec
