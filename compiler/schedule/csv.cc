#include "absl/strings/str_cat.h"
#include "compiler/schedule/schedule.h"

namespace pipec {

std::string ToCsv(const Schedule& schedule) {
  std::string csv;
  for (const auto& list : schedule.ranks) {
    absl::string_view separator = "";
    for (const Action& action : list) {
      if (!IsCompute(action.kind)) continue;
      absl::StrAppend(&csv, separator, ToString(action));
      separator = ",";
    }
    absl::StrAppend(&csv, "\n");
  }
  return csv;
}

}  // namespace pipec
