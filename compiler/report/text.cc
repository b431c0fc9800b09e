#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/report/candidates.h"
#include "compiler/report/report.h"
#include "runtime/base/counted.h"
#include "runtime/base/format_size.h"

namespace pipec {
namespace {

// "12.3k", "4.56G": three digits and a power of 1000.
std::string Short(double number) {
  constexpr const char* kUnits[] = {"", "k", "M", "G", "T", "P"};
  int unit = 0;
  for (; number >= 999.5 && unit < 5; ++unit) number /= 1000;
  return absl::StrFormat("%.3g%s", number, kUnits[unit]);
}

bool DevicesDiffer(const Report& report) {
  return std::any_of(report.stages.begin(), report.stages.end(),
                     [&](const StageRow& row) { return row.device != report.stages[0].device; });
}

}  // namespace

std::string ReportText(const Report& report) {
  std::string out;
  const std::string simulated = NameOfSimulated(report.origins);
  for (const std::string& note : report.notes) absl::StrAppend(&out, "note: ", note, "\n");
  if (!report.notes.empty()) out += "\n";
  absl::StrAppend(&out, CandidatesText(report));
  absl::StrAppendFormat(
      &out, "%s: %s%s x %s, %s, %s, batch %d, times for %s: %s, of messages: %s\n\n", report.model,
      report.replicas > 1 ? absl::StrCat(report.replicas, " replicas of ") : "",
      Counted(report.shape.ranks, "rank", "ranks"), Counted(report.shape.virtual_stages, "stage", "stages"),
      report.schedule, Counted(report.shape.microbatches, "microbatch", "microbatches"), report.batch,
      report.device, Name(report.origins), Name(report.message_origin));
  const bool trains = report.mode == Mode::kTrain;
  absl::StrAppend(&out, "stage  rank  nodes  parameters     FLOP  forward ms", trains ? "  backward ms" : "",
                  "       sent  peak memory  times", DevicesDiffer(report) ? "     device\n" : "\n");
  for (const StageRow& row : report.stages) {
    absl::StrAppendFormat(&out, "%5d %5d %6d %11s %8s %11.3f", row.stage, row.rank, row.nodes, Short(row.parameters),
                          Short(row.flop), row.forward_seconds * 1e3);
    if (trains) absl::StrAppendFormat(&out, " %12.3f", row.backward_seconds * 1e3);
    absl::StrAppendFormat(&out, " %10s %12s  %s", FormatSize(row.sent_bytes), FormatSize(row.peak_bytes),
                          Name(row.origins));
    absl::StrAppend(&out, DevicesDiffer(report) ? absl::StrCat("  ", row.device) : "", "\n");
  }
  absl::StrAppend(&out, "(FLOP, times and what is sent per microbatch; peak memory is the rank's)\n\n");
  absl::StrAppendFormat(&out, "bubble ratio              %.1f %% (%s)\n", report.bubble_ratio * 100, simulated);
  absl::StrAppendFormat(&out, "step time                 %.3f ms (%s; %s)\n", report.step_seconds * 1e3, simulated,
                        report.step_span);
  if (report.bound_ratio > 0) {
    absl::StrAppendFormat(&out, "slowest stage over bound  %.3f (%s)\n", report.bound_ratio, simulated);
  }
  std::string workspace;
  if (report.workspace_bytes > 0) {
    workspace = absl::StrCat(", and ", FormatSize(report.workspace_bytes), " of workspace for kernels and steps");
  }
  absl::StrAppendFormat(&out, "peak memory               %s (planned)%s\n", FormatSize(report.peak_bytes), workspace);
  if (!report.advice.empty()) out += "\n";
  for (const std::string& advice : report.advice) absl::StrAppend(&out, "advice: ", advice, "\n");
  return out;
}

}  // namespace pipec
