// The report as one page: the timeline of a modelled step as SVG, ranks down, time across, and the table.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "compiler/report/report.h"

namespace pipec {
namespace {

constexpr int kRow = 34;      // pixels from one rank to the next
constexpr int kBar = 26;      // height of an action
constexpr int kLeft = 70;     // where time starts
constexpr int kWidth = 1400;  // of the whole picture

std::string Escape(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

constexpr char kStyle[] = R"(
  :root { color-scheme: light dark; --ink: #1c2430; --page: #fdfdfc; --idle: #e9e6df; --F: #3f7fca; --B: #3d9a6a; --I: #3d9a6a;
    --W: #c98a2b; --rule: #d5d2ca; }
  @media (prefers-color-scheme: dark) { :root { --ink: #e4e7ec; --page: #16191e; --idle: #2b2f36; --F: #4c8ddb; --B: #3f9d6d;
    --I: #3f9d6d; --W: #c48a35; --rule: #3a3f48; } }
  body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); margin: 2rem auto; max-width: 1460px;
    padding: 0 1rem; }
  svg { width: 100%; height: auto; } svg text { fill: var(--ink); font-size: 12px; }
  svg .n { fill: #fff; text-anchor: middle; pointer-events: none; }
  .idle { fill: var(--idle); } .F { fill: var(--F); } .B { fill: var(--B); } .I { fill: var(--I); } .W { fill: var(--W); }
  rect.F, rect.B, rect.I, rect.W { stroke: var(--page); }
  .key span { display: inline-block; width: 1em; height: 1em; margin: 0 .3em 0 1em; vertical-align: -.1em; }
  table { border-collapse: collapse; } td, th { text-align: right; padding: .25rem .9rem; border-bottom: 1px solid var(--rule); }
  .wide { overflow-x: auto; }
)";

std::string Timeline(const Module& module) {
  const Simulation& simulation = module.simulation;
  const int ranks = static_cast<int>(simulation.ranks.size());
  const double scale = simulation.makespan > 0 ? (kWidth - kLeft) / simulation.makespan : 0;
  std::string out =
      absl::StrFormat("<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"timeline of one step\">\n",
                      kWidth, ranks * kRow + 24);
  for (int rank = 0; rank < ranks; ++rank) {
    const int y = rank * kRow;
    absl::StrAppendFormat(&out, "<text x=\"0\" y=\"%d\">rank %d</text>\n", y + 17, rank);
    absl::StrAppendFormat(&out, "<rect class=\"idle\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n",
                          kLeft, y, kWidth - kLeft, kBar);
    for (const SimulatedAction& slice : simulation.ranks[rank]) {
      if (!IsCompute(slice.action.kind)) continue;
      const double x = kLeft + slice.start * scale;
      const double width = (slice.end - slice.start) * scale;
      // The later of a rank's stages are paler.
      const int local = slice.action.stage / std::max(module.schedule.shape.ranks, 1);
      const double opacity = 1.0 - 0.5 * local / std::max(module.schedule.shape.virtual_stages, 1);
      absl::StrAppendFormat(
          &out,
          "<rect class=\"%s\" x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" opacity=\"%.2f\">"
          "<title>%s: %.3f ms from %.3f ms</title></rect>\n",
          std::string(Name(slice.action.kind)), x, y, width, kBar, opacity, ToString(slice.action),
          (slice.end - slice.start) * 1e3, slice.start * 1e3);
      if (width >= 16) {
        absl::StrAppendFormat(&out, "<text class=\"n\" x=\"%.2f\" y=\"%d\">%d</text>\n", x + width / 2,
                              y + 17, slice.action.microbatch);
      }
    }
  }
  absl::StrAppendFormat(
      &out, "<text x=\"%d\" y=\"%d\">0</text><text x=\"%d\" y=\"%d\" text-anchor=\"end\">%.3f ms</text>\n",
      kLeft, ranks * kRow + 14, kWidth, ranks * kRow + 14, simulation.makespan * 1e3);
  return out + "</svg>\n";
}

std::string Table(const Report& report) {
  std::string out =
      "<div "
      "class=\"wide\"><table><tr><th>stage</th><th>rank</th><th>nodes</th><th>parameters</th><th>GFLOP</th>"
      "<th>forward ms</th><th>backward ms</th><th>sent MB</th><th>peak memory MB</th></tr>\n";
  for (const StageRow& row : report.stages) {
    absl::StrAppendFormat(
        &out,
        "<tr><td>%d</td><td>%d</td><td>%d</td><td>%d</td><td>%.4g</td><td>%.3f</td><td>%.3f</td>"
        "<td>%.3f</td><td>%.3f</td></tr>\n",
        row.stage, row.rank, row.nodes, row.parameters, row.flop * 1e-9, row.forward_seconds * 1e3,
        row.backward_seconds * 1e3, row.sent_bytes * 1e-6, row.peak_bytes * 1e-6);
  }
  return out + "</table></div>\n";
}

}  // namespace

std::string ReportHtml(const Module& module, const Report& report) {
  std::string out = absl::StrCat(
      "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n",
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>pipec: ",
      Escape(report.model), "</title>\n<style>", kStyle, "</style>\n<h1>", Escape(report.model), "</h1>\n");
  absl::StrAppendFormat(
      &out,
      "<p>%d ranks x %d stages, %s, %d microbatches, batch %d. Times are modelled for %s; bytes are "
      "exact.</p>\n",
      report.shape.ranks, report.shape.virtual_stages, Escape(report.schedule), report.shape.microbatches,
      report.batch, Escape(report.device));
  absl::StrAppendFormat(&out, "<p>Bubble ratio %.1f %%, step time %.3f ms, peak memory %.3f MB",
                        report.bubble_ratio * 100, report.step_seconds * 1e3, report.peak_bytes * 1e-6);
  if (report.bound_ratio > 0)
    absl::StrAppendFormat(&out, ", slowest stage over the lower bound %.3f", report.bound_ratio);
  out += ".</p>\n<h2>One step</h2>\n<p class=\"key\">The number is the microbatch.";
  for (const auto& [style, meaning] : {std::pair{"F", "forward"},
                                       {"B", "backward (I: input gradients)"},
                                       {"W", "weight gradients"},
                                       {"idle", "bubble"}}) {
    absl::StrAppend(&out, "<span style=\"background: var(--", style, ")\"></span>", meaning);
  }
  absl::StrAppend(&out, "</p>\n", Timeline(module), "<h2>Stages</h2>\n", Table(report));
  absl::StrAppend(&out, "<p>FLOP, times and sent bytes are per microbatch; peak memory is the rank's.</p>\n");
  if (!report.notes.empty()) {
    out += "<h2>Notes</h2>\n<ul>\n";
    for (const std::string& note : report.notes) absl::StrAppend(&out, "<li>", Escape(note), "</li>\n");
    out += "</ul>\n";
  }
  return out + "</html>\n";
}

}  // namespace pipec
