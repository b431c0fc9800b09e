#include "runtime/base/process_memory.h"

#include <fstream>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace pipec {

absl::StatusOr<int64_t> OwnMemoryBytes() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    absl::string_view rest = line;
    int64_t kilobytes;  // of 1024 bytes
    if (absl::ConsumePrefix(&rest, "RssAnon:") && absl::ConsumeSuffix(&rest, "kB") &&
        absl::SimpleAtoi(rest, &kilobytes))
      return kilobytes * 1024;
  }
  return absl::UnavailableError("the system does not say how much memory the process has");
}

}  // namespace pipec
