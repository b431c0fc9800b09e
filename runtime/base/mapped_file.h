// A file's bytes, mapped read-only.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipec {

class MappedFile {
 public:
  // Errors name the path. Only regular files.
  static absl::StatusOr<MappedFile> Open(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  absl::string_view bytes() const { return bytes_; }
  const std::string& path() const { return path_; }

 private:
  MappedFile(std::string path, absl::string_view bytes) : path_(std::move(path)), bytes_(bytes) {}

  std::string path_;
  absl::string_view bytes_;
};

}  // namespace pipec
