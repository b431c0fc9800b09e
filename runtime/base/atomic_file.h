// A file that appears whole or not at all: written under a temporary name beside its place, flushed to the
// disk, renamed. A device, a pipe or a link that is there already is written into as it is.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipec {

class AtomicFile {
 public:
  // Errors name the path: NotFound (no such directory), PermissionDenied, ...
  static absl::StatusOr<AtomicFile> Create(const std::string& path);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  // Removes the temporary file unless Commit succeeded.
  ~AtomicFile();

  // Appends. ResourceExhausted if the disk is full.
  absl::Status Write(absl::string_view bytes);
  absl::Status Commit();

 private:
  AtomicFile(std::string path, std::string temporary, int fd);

  std::string path_, temporary_;
  int fd_;
};

// The whole of a small file in one call.
absl::Status WriteFileAtomically(const std::string& path, absl::string_view bytes);

}  // namespace pipec
