#include "tools/support/values.h"

#include <cmath>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace pipec {

absl::StatusOr<int64_t> ParseSize(absl::string_view text) {
  const size_t digits = text.find_first_not_of("0123456789.");
  const absl::string_view unit = digits == absl::string_view::npos ? "" : text.substr(digits);
  constexpr absl::string_view kPrefixes = "kMGTP";
  double factor = 0;
  if (unit.empty() || unit == "B") {
    factor = 1;
  } else if (const size_t power = kPrefixes.find(unit[0] == 'K' ? 'k' : unit[0]); power != absl::string_view::npos) {
    if (unit.substr(1) == "B") factor = std::pow(1000.0, static_cast<double>(power + 1));
    if (unit.substr(1) == "iB") factor = std::pow(1024.0, static_cast<double>(power + 1));
  }
  double number = 0;
  if (factor == 0 || !absl::SimpleAtod(text.substr(0, text.size() - unit.size()), &number)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", text,
        "' is not a size; write a number with B, kB, MB, GB, TB (1000) or KiB, MiB, GiB, TiB (1024)"));
  }
  const double bytes = number * factor;
  if (bytes >= static_cast<double>(std::numeric_limits<int64_t>::max())) {
    return absl::InvalidArgumentError(absl::StrCat("'", text, "' is more than 2^63 bytes"));
  }
  return static_cast<int64_t>(bytes);
}

}  // namespace pipec
