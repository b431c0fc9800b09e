#include "compiler/report/candidates.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/format_size.h"

namespace pipec {

std::string CandidatesText(const Report& report) {
  if (report.candidates.empty()) return "";
  std::string out = "schedule       V   step ms  bubble  peak memory\n";
  for (const CandidateRow& row : report.candidates) {
    absl::StrAppendFormat(&out, "%-12s %3d", row.schedule, row.virtual_stages);
    if (row.refusal.empty()) {
      absl::StrAppendFormat(&out, " %9.3f %5.1f %% %12s\n", row.step_seconds * 1e3, row.bubble_ratio * 100,
                            FormatSize(row.peak_bytes));
    } else {
      absl::StrAppend(&out, "  ", row.refusal.substr(0, row.refusal.find_first_of(";\n")), "\n");
    }
  }
  if (report.candidates_bound_seconds > 0) {
    const double end = report.candidates[0].order_seconds;
    absl::StrAppendFormat(&out,
                          "(the first was taken: its last F, I or W ends at %.3f ms, %.1f %% above what no order of such "
                          "stages can beat)\n",
                          end * 1e3, 100 * std::max(0.0, end / report.candidates_bound_seconds - 1));
  }
  return out + "\n";
}

}  // namespace pipec
