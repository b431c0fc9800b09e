#include "tools/read_text.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"

namespace pipec {

absl::StatusOr<std::string> ReadText(absl::string_view flag, const std::string& path) {
  std::error_code none;
  std::ifstream file(path);
  std::stringstream contents;
  contents << file.rdbuf();
  const bool is_directory = std::filesystem::is_directory(path, none);
  if (file && !is_directory) return contents.str();
  return absl::NotFoundError(
      absl::StrCat("--", flag, ": cannot read ", path, ": ", std::strerror(is_directory ? EISDIR : errno)));
}

}  // namespace pipec
