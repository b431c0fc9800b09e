#include "tools/support/written.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace pipec {

namespace fs = std::filesystem;

void Written::Add(const std::string& path) {
  std::error_code none;
  const fs::file_status there = fs::status(path, none);
  // Pipes and devices are written into.
  const bool replaces = fs::is_regular_file(there) || fs::is_directory(there);
  absl::StrAppend(&lines_, replaces ? "replaced " : "wrote ", path, "\n");
}

}  // namespace pipec
