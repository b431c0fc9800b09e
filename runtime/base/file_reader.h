// A file read piece by piece through one small buffer: for contents that need not fit in memory, such as
// weights that are hashed, copied or loaded. A mapped file's pages would count as the process's own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipec {

class FileReader {
 public:
  // Errors name the path. Only regular files.
  static absl::StatusOr<FileReader> Open(const std::string& path);
  FileReader(FileReader&& other) noexcept;
  FileReader& operator=(FileReader&&) = delete;
  ~FileReader();

  // Hands the bytes [offset, offset + length) to `visit`, in order, in pieces that are a multiple of 8 bytes
  // but for the last. The first error of `visit` ends it. InvalidArgument if the file ends before.
  absl::Status Read(int64_t offset, int64_t length,
                    absl::FunctionRef<absl::Status(absl::string_view piece)> visit);

  const std::string& path() const { return path_; }
  // As they were when the file was opened.
  int64_t bytes() const { return bytes_; }
  int64_t modified_ns() const { return modified_ns_; }  // since 1970

 private:
  FileReader(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  // How many of the next `most` bytes lie in a hole of the file; 0: none, or not known.
  int64_t HoleAt(int64_t offset, int64_t most);

  std::string path_;
  int fd_;
  int64_t bytes_ = 0;
  int64_t data_begin_ = 0, data_end_ = 0;  // the next piece of the file that is no hole
  int64_t modified_ns_ = 0;
  std::unique_ptr<char[]> buffer_;
};

// Many files read one after the other, one open at a time: a model may keep thousands of weights in one file,
// or each in its own.
class FileSequence {
 public:
  // The file at `path`, which stays open until another is asked for. Errors are FileReader::Open's.
  absl::StatusOr<FileReader*> Open(const std::string& path);

 private:
  std::optional<FileReader> file_;
};

}  // namespace pipec
