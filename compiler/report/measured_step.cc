// The trace's events have args step, stage and microbatch. cat F, B, ..., NORM, UPDATE: what a rank does;
// SEND_F, SEND_B, with args from_stage and to_stage: a message is handed over; wait, with the same args, on
// the receiver: until it was there.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "compiler/report/step_picture.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

using nlohmann::json;

struct Event {
  std::string kind;
  int step = 0, rank = 0, stage = -1, microbatch = -1;
  int from_stage = -1, to_stage = -1;  // of a message
  double start = 0, end = 0;           // seconds
};

bool ReadInt(const json& object, const char* key, int* value) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer()) return false;
  const int64_t number = *found;
  *value = static_cast<int>(number);
  return *value == number;
}

// Microseconds, as seconds.
bool ReadTime(const json& object, const char* key, double* seconds) {
  constexpr double kMost = 1e15;  // thirty years
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return false;
  *seconds = found->get<double>() * 1e-6;
  return *seconds >= 0 && *seconds <= kMost * 1e-6;
}

// False if it is none of piperun's slices.
bool ReadEvent(const json& entry, Event* event) {
  if (!entry.is_object() || !entry.contains("args") || !entry["args"].is_object()) return false;
  const json& args = entry["args"];
  double duration = 0;
  if (!ReadInt(args, "step", &event->step) || !ReadInt(args, "stage", &event->stage) ||
      !ReadInt(args, "microbatch", &event->microbatch) || !ReadInt(entry, "pid", &event->rank) ||
      !ReadTime(entry, "ts", &event->start) || !ReadTime(entry, "dur", &duration) || !entry.contains("cat") ||
      !entry["cat"].is_string()) {
    return false;
  }
  event->kind = entry["cat"];
  event->end = event->start + duration;
  if (args.contains("from_stage"))
    return ReadInt(args, "from_stage", &event->from_stage) && ReadInt(args, "to_stage", &event->to_stage);
  return true;
}

// What a rank's list has once a microbatch or once a step, as it names them.
std::multiset<std::string> Expected(const Module& module, int rank) {
  std::multiset<std::string> names;
  for (const Action& action : module.schedule.ranks[rank]) {
    if (!IsMessage(action.kind) && action.kind != ActionKind::kReduceGrad) names.insert(ToString(action));
  }
  return names;
}

const ActionKind kDrawn[] = {ActionKind::kF,          ActionKind::kB,    ActionKind::kI,     ActionKind::kW,
                             ActionKind::kReduceTied, ActionKind::kNorm, ActionKind::kUpdate};

// A rank does its F, B, I and W in the order of its list: another order is another schedule's.
absl::Status CheckOrder(const StepPicture& picture, const Module& module, absl::string_view path) {
  for (int rank = 0; rank < picture.ranks.size(); ++rank) {
    auto done = picture.ranks[rank].begin();
    for (const Action& planned : module.schedule.ranks[rank]) {
      if (!IsCompute(planned.kind)) continue;
      while (!IsCompute(done->action.kind)) ++done;
      if (ToString(done->action) != ToString(planned)) {
        return absl::InvalidArgumentError(
            absl::StrCat("--measured=", path, ": step ", picture.step, ": rank ", rank, " does ",
                         ToString(done->action), " where schedule ", module.schedule.name, " has ",
                         ToString(planned), "; the trace is of another schedule"));
      }
      ++done;
    }
  }
  return absl::OkStatus();
}

// The step's compute and once-a-step actions, at their place in `picture`; its messages.
absl::Status Draw(const std::vector<Event>& events, double begin, const Module& module,
                  absl::string_view path, StepPicture* picture) {
  picture->ranks.assign(module.schedule.shape.ranks, {});
  std::vector<std::multiset<std::string>> missing;
  for (int rank = 0; rank < module.schedule.shape.ranks; ++rank) missing.push_back(Expected(module, rank));
  std::map<std::tuple<int, int, int>, double> handed_over, there;  // from, to, microbatch
  for (const Event& event : events) {
    if (event.rank < 0 || event.rank >= picture->ranks.size()) {
      return absl::InvalidArgumentError(absl::StrCat("--measured=", path, ": rank ", event.rank,
                                                     " is none of the plan's ", picture->ranks.size(),
                                                     "; the trace is of another plan"));
    }
    if (event.from_stage >= 0) {
      const std::tuple<int, int, int> key = {event.from_stage, event.to_stage, event.microbatch};
      if (event.kind == "SEND_F" || event.kind == "SEND_B") handed_over[key] = event.start - begin;
      if (event.kind == "wait" && event.stage == event.to_stage) there[key] = event.end - begin;
      continue;
    }
    for (ActionKind kind : kDrawn) {
      if (event.kind != Name(kind)) continue;
      const Action action{kind, event.stage, event.microbatch};
      const auto found = missing[event.rank].find(ToString(action));
      if (found == missing[event.rank].end()) {
        return absl::InvalidArgumentError(
            absl::StrCat("--measured=", path, ": step ", event.step, ": rank ", event.rank, " has ",
                         ToString(action), " more often than the plan; the trace is of another plan"));
      }
      missing[event.rank].erase(found);
      picture->ranks[event.rank].push_back({action, event.start - begin, event.end - begin});
    }
  }
  for (int rank = 0; rank < missing.size(); ++rank) {
    for (const Action& action : module.schedule.ranks[rank]) {
      if (!missing[rank].contains(ToString(action))) continue;
      return absl::InvalidArgumentError(absl::StrCat("--measured=", path, ": step ", picture->step, ": rank ",
                                                     rank, " lacks ", ToString(action),
                                                     "; the trace is of another plan"));
    }
  }
  RETURN_IF_ERROR(CheckOrder(*picture, module, path));
  for (int link = 0; link < picture->links.size(); ++link) {
    for (int m = 0; m < module.schedule.shape.microbatches; ++m) {
      const std::tuple<int, int, int> key = {picture->links[link].from_stage, picture->links[link].to_stage,
                                             m};
      if (handed_over.contains(key) && there.contains(key))
        picture->messages.push_back({link, m, handed_over[key], std::max(handed_over[key], there[key])});
    }
  }
  return absl::OkStatus();
}

// As a simulation's: of the time until the last F, B, I or W is over.
double BubbleRatio(const StepPicture& picture) {
  double busy = 0, end = 0;
  for (const auto& list : picture.ranks) {
    for (const SimulatedAction& slice : list) {
      if (!IsCompute(slice.action.kind)) continue;
      busy += slice.end - slice.start;
      end = std::max(end, slice.end);
    }
  }
  return end > 0 ? 1 - busy / (end * picture.ranks.size()) : 0;
}

}  // namespace

absl::StatusOr<StepPicture> MeasuredStep(absl::string_view trace, absl::string_view path,
                                         const Module& module) {
  if (module.schedule.asynchronous()) {
    return absl::UnimplementedError(absl::StrCat("--measured: steps of schedule ", module.schedule.name,
                                                 " overlap, none can be drawn by itself; Perfetto shows ",
                                                 path));
  }
  const json document = json::parse(trace, nullptr, /*allow_exceptions=*/false);
  if (!document.is_object() || !document.contains("traceEvents") || !document["traceEvents"].is_array()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--measured=", path, " is no Chrome trace; piperun --trace writes one"));
  }
  std::map<int, std::vector<Event>> steps;
  for (const json& entry : document["traceEvents"]) {
    Event event;
    if (!ReadEvent(entry, &event)) continue;
    // Of several replicas the first is drawn.
    const int ranks = module.schedule.shape.ranks;
    if (event.rank < ranks || event.rank >= ranks * module.replicas) steps[event.step].push_back(event);
  }
  if (steps.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--measured=", path, " holds no step of a run; piperun --trace writes them"));
  }
  struct Length {
    double seconds;
    int step;
    double begin;
  };
  std::vector<Length> lengths;
  for (auto& [step, events] : steps) {
    std::stable_sort(events.begin(), events.end(),
                     [](const Event& a, const Event& b) { return a.start < b.start; });
    double end = events[0].end;
    for (const Event& event : events) end = std::max(end, event.end);
    lengths.push_back({end - events[0].start, step, events[0].start});
  }
  std::stable_sort(lengths.begin(), lengths.end(),
                   [](const Length& a, const Length& b) { return a.seconds < b.seconds; });
  const Length& median = lengths[lengths.size() / 2];

  StepPicture picture = ModelledStep(module, {});
  picture.times = "measured";
  picture.step = median.step;
  picture.messages.clear();
  picture.memory.clear();
  picture.peak_bytes = 0;
  picture.step_seconds = median.seconds;
  RETURN_IF_ERROR(Draw(steps[median.step], median.begin, module, path, &picture));
  picture.bubble_ratio = BubbleRatio(picture);
  return picture;
}

}  // namespace pipec
