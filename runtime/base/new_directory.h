// A directory that appears whole or not at all: filled under a temporary name beside its place, then renamed.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace pipec {

class NewDirectory {
 public:
  // Errors name the path: the parent is missing, not writable, ...
  static absl::StatusOr<NewDirectory> Create(const std::string& path);
  NewDirectory(NewDirectory&& other) noexcept;
  NewDirectory& operator=(NewDirectory&&) = delete;
  // Removes everything unless Commit succeeded.
  ~NewDirectory();

  // Where to write until Commit puts it in its place.
  const std::string& path() const { return temporary_; }
  // Puts the directory in its place; what was there is removed once the new one stands.
  absl::Status Commit();

 private:
  NewDirectory(std::string target, std::string temporary)
      : target_(std::move(target)), temporary_(std::move(temporary)) {}

  std::string target_, temporary_;
};

}  // namespace pipec
