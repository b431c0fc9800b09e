// A file of a given name and content in a folder of its own, for readers that take a path. The folder lies in
// memory where the system has such a place, so that a fuzzer is not slowed down by a disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace pipec {

class MemoryFile {
 public:
  // Makes the folder; aborts if that fails.
  explicit MemoryFile(const std::string& name);
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile();

  // Replaces the content; aborts if that fails.
  void Write(const uint8_t* data, size_t size);

  const std::string& path() const { return path_; }
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_, path_;
};

}  // namespace pipec
