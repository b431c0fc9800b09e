#include "runtime/base/new_directory.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace pipec {
namespace {

namespace fs = std::filesystem;

absl::Status Failed(absl::string_view what, const std::string& path, const std::error_code& code) {
  return absl::ErrnoToStatus(code.value(), absl::StrCat(what, " '", path, "'"));
}

}  // namespace

absl::StatusOr<NewDirectory> NewDirectory::Create(const std::string& path) {
  std::string target = path;
  while (target.size() > 1 && target.back() == '/') target.pop_back();
  std::string temporary = absl::StrCat(target, ".partial-XXXXXX");
  if (mkdtemp(temporary.data()) == nullptr) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot make a directory beside '", target, "'"));
  }
  // mkdtemp makes it private; a plan is as readable as any other file of the user.
  const mode_t mask = umask(0);
  umask(mask);
  chmod(temporary.c_str(), 0777 & ~mask);
  return NewDirectory(std::move(target), std::move(temporary));
}

NewDirectory::NewDirectory(NewDirectory&& other) noexcept
    : target_(std::move(other.target_)), temporary_(std::move(other.temporary_)) {
  other.temporary_.clear();
}

NewDirectory::~NewDirectory() {
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
}

absl::Status NewDirectory::Commit() {
  std::error_code code;
  std::string old;
  if (fs::exists(target_)) {
    old = absl::StrCat(temporary_, ".old");
    fs::rename(target_, old, code);
    if (code) return Failed("cannot replace", target_, code);
  }
  fs::rename(temporary_, target_, code);
  if (code) {
    std::error_code ignored;
    if (!old.empty()) fs::rename(old, target_, ignored);
    return Failed("cannot write", target_, code);
  }
  temporary_.clear();
  if (!old.empty()) fs::remove_all(old, code);
  return absl::OkStatus();
}

}  // namespace pipec
