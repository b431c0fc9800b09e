#include "runtime/base/format_size.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

namespace pipec {

std::string FormatSize(int64_t bytes) {
  constexpr absl::string_view kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  double number = static_cast<double>(bytes);
  int unit = 0;
  while (number >= 999.5 && unit < 5) {
    number /= 1000;
    ++unit;
  }
  return unit == 0 ? absl::StrCat(bytes, " B") : absl::StrFormat("%.3g %s", number, kUnits[unit]);
}

}  // namespace pipec
