#include "compiler/report/candidates.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/counted.h"
#include "runtime/base/format_size.h"

namespace pipec {
namespace {

// "--stages=2 --microbatches=8 --schedule=1f1b", with --virtual-stages where that is not 1.
std::string FlagsOf(const CandidateRow& row) {
  std::string flags = absl::StrCat("--stages=", row.shape.ranks, " --microbatches=", row.shape.microbatches,
                                   " --schedule=", row.schedule);
  if (row.shape.virtual_stages > 1) absl::StrAppend(&flags, " --virtual-stages=", row.shape.virtual_stages);
  return flags;
}

}  // namespace

const CandidateRow* RunnerUp(const Report& report) {
  if (report.candidates.size() < 2 || !report.candidates[1].refusal.empty()) return nullptr;
  return &report.candidates[1];
}

std::string CandidatesText(const Report& report) {
  if (report.candidates.empty()) return "";
  const CandidateRow& chosen = report.candidates[0];
  std::string out = "   P     M  schedule       V   step ms   samples/s  bubble  peak memory\n";
  for (const CandidateRow& row : report.candidates) {
    absl::StrAppendFormat(&out, "%4d %5d  %-12s %3d", row.shape.ranks, row.shape.microbatches, row.schedule,
                          row.shape.virtual_stages);
    if (row.refusal.empty()) {
      absl::StrAppendFormat(&out, " %9.3f %11.5g %5.1f %% %12s\n", row.step_seconds * 1e3,
                            1 / row.sample_seconds(), row.bubble_ratio * 100, FormatSize(row.peak_bytes));
    } else {
      absl::StrAppend(&out, "  ", row.refusal.substr(0, row.refusal.find_first_of(";\n")), "\n");
    }
  }
  out += "(the first was taken";
  if (const CandidateRow* second = RunnerUp(report)) {
    absl::StrAppendFormat(&out, "; the second, %s, takes %.1f %% longer a sample", FlagsOf(*second),
                          100 * std::max(0.0, second->sample_seconds() / chosen.sample_seconds() - 1));
  }
  out += ")\n";
  if (report.candidates_passed_over > 0) {
    absl::StrAppend(&out, "(", Counted(report.candidates_passed_over, "more pair", "more pairs"),
                    " of ranks and microbatches not compiled: by their work alone they cannot be faster than "
                    "the second, or the same plans with more microbatches are not)\n");
  }
  if (report.candidates_bound_seconds > 0) {
    absl::StrAppendFormat(&out,
                          "(the last F, I or W of the first ends at %.3f ms, %.1f %% above what no order of "
                          "such stages can beat)\n",
                          chosen.order_seconds * 1e3,
                          100 * std::max(0.0, chosen.order_seconds / report.candidates_bound_seconds - 1));
  }
  return out + "\n";
}

}  // namespace pipec
