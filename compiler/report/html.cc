// The report as one page: all that it shows as JSON, in the page that draws it (page/). Times are whole
// nanoseconds from the step's begin; a rank's actions are columns, one entry an action, kinds as letters: F B
// I W, N (norm), U (update), T (tied parameters). A message is [link, microbatch, sent, arrived]. Memory is
// [time, bytes, time, bytes, ...].
#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_replace.h"
#include "compiler/report/page.h"
#include "compiler/report/report.h"

namespace pipec {
namespace {

using nlohmann::ordered_json;

int64_t Nanoseconds(double seconds) { return std::llround(seconds * 1e9); }

char Letter(ActionKind kind) {
  switch (kind) {
    case ActionKind::kNorm:
      return 'N';
    case ActionKind::kUpdate:
      return 'U';
    case ActionKind::kReduceTied:
      return 'T';
    default:
      return Name(kind)[0];
  }
}

ordered_json ToJson(const std::vector<SimulatedAction>& actions) {
  std::string kinds;
  ordered_json stages = ordered_json::array(), microbatches = stages, starts = stages, durations = stages;
  for (const SimulatedAction& slice : actions) {
    kinds += Letter(slice.action.kind);
    stages.push_back(slice.action.stage);
    microbatches.push_back(slice.action.microbatch);
    starts.push_back(Nanoseconds(slice.start));
    durations.push_back(Nanoseconds(slice.end) - Nanoseconds(slice.start));
  }
  return {{"kinds", kinds},
          {"stages", std::move(stages)},
          {"microbatches", std::move(microbatches)},
          {"starts", std::move(starts)},
          {"durations", std::move(durations)}};
}

ordered_json ToJson(const MemoryCurve& curve) {
  ordered_json points = ordered_json::array();
  for (const MemoryPoint& point : curve.points) {
    points.push_back(Nanoseconds(point.seconds));
    points.push_back(point.bytes);
  }
  return {{"always_bytes", curve.always_bytes},
          {"reserved_bytes", curve.reserved_bytes},
          {"points", std::move(points)}};
}

ordered_json ToJson(const StepPicture& picture) {
  ordered_json out = {{"schedule", picture.schedule},
                      {"times", picture.times},
                      {"step", picture.step},
                      {"ranks", picture.shape.ranks},
                      {"virtual_stages", picture.shape.virtual_stages},
                      {"microbatches", picture.shape.microbatches},
                      {"rank_of_stage", picture.rank_of_stage},
                      {"step_time_s", picture.step_seconds},
                      {"bubble_ratio", picture.bubble_ratio},
                      {"recomputing_stages", picture.recomputing_stages},
                      {"peak_bytes", picture.peak_bytes}};
  ordered_json actions = ordered_json::array(), links = actions, messages = actions, memory = actions;
  for (const auto& list : picture.ranks) actions.push_back(ToJson(list));
  for (const PictureLink& link : picture.links)
    links.push_back({{"from", link.from_stage}, {"to", link.to_stage}, {"bytes", link.bytes}});
  for (const PictureMessage& message : picture.messages) {
    messages.push_back(
        {message.link, message.microbatch, Nanoseconds(message.sent), Nanoseconds(message.arrived)});
  }
  for (const MemoryCurve& curve : picture.memory) memory.push_back(ToJson(curve));
  out["actions"] = std::move(actions);
  out["links"] = std::move(links);
  out["messages"] = std::move(messages);
  out["memory"] = std::move(memory);
  return out;
}

std::string Escape(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

}  // namespace

std::string ReportHtml(const Module& module, const Report& report, const std::vector<ComparedStep>& compared,
                       const std::optional<StepPicture>& measured) {
  ordered_json data = {{"report", ordered_json::parse(ReportJson(report))},
                       {"step", ToJson(ModelledStep(module, report.origins))}};
  data["compared"] = ordered_json::array();
  for (const ComparedStep& other : compared) {
    data["compared"].push_back(other.step
                                   ? ToJson(*other.step)
                                   : ordered_json{{"schedule", other.schedule}, {"refusal", other.refusal}});
  }
  if (measured) data["measured"] = ToJson(*measured);
  // Inside a script element nothing but "<" could end it.
  const std::string json = absl::StrReplaceAll(
      data.dump(-1, ' ', /*ensure_ascii=*/true, ordered_json::error_handler_t::replace), {{"<", "\\u003c"}});
  return absl::StrReplaceAll(kReportPage, {{kTitleMark, Escape(report.model)}, {kDataMark, json}});
}

}  // namespace pipec
