#include "absl/strings/str_cat.h"
#include "compiler/schedule/schedule.h"

namespace pipec {

std::string ToCsv(const Schedule& schedule) {
  std::string csv;
  for (const auto& list : schedule.ranks) {
    absl::string_view separator = "";
    bool in_pair = false;
    for (const Action& action : list) {
      if (!IsCompute(action.kind)) continue;
      absl::StrAppend(&csv, in_pair ? ";" : separator, action.paired ? "(" : "", ToString(action),
                      in_pair ? ")OVERLAP_F_B" : "");
      in_pair = action.paired;
      separator = ",";
    }
    absl::StrAppend(&csv, "\n");
  }
  return csv;
}

}  // namespace pipec
