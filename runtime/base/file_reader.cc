#include "runtime/base/file_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

// Fits in a core's own cache, and is enough that the calls do not matter.
constexpr int64_t kPiece = 256 << 10;

}  // namespace

absl::StatusOr<FileReader> FileReader::Open(const std::string& path) {
  // O_NONBLOCK: opening a FIFO must fail below, not hang here.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open '", path, "'"));
  FileReader file(path, fd);
  struct stat info;
  if (fstat(fd, &info) != 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read '", path, "'"));
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' is not a regular file"));
  }
  file.bytes_ = info.st_size;
  file.modified_ns_ = int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
  return file;
}

FileReader::FileReader(FileReader&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      bytes_(other.bytes_),
      modified_ns_(other.modified_ns_),
      buffer_(std::move(other.buffer_)) {}

FileReader::~FileReader() {
  if (fd_ >= 0) close(fd_);
}

absl::Status FileReader::Read(int64_t offset, int64_t length,
                              absl::FunctionRef<absl::Status(absl::string_view piece)> visit) {
  if (!buffer_) buffer_.reset(new char[kPiece]);
  for (const int64_t end = offset + length; offset < end;) {
    const int64_t wanted = std::min(kPiece, end - offset);
    int64_t filled = 0;
    while (filled < wanted) {
      const ssize_t got = pread(fd_, buffer_.get() + filled, wanted - filled, offset + filled);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read '", path_, "'"));
      if (got == 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("'", path_, "' ends at byte ", offset + filled, ", wanted bytes up to ", end));
      }
      filled += got;
    }
    RETURN_IF_ERROR(visit({buffer_.get(), static_cast<size_t>(wanted)}));
    offset += wanted;
  }
  return absl::OkStatus();
}

absl::StatusOr<FileReader*> FileSequence::Open(const std::string& path) {
  if (!file_ || file_->path() != path) {
    ASSIGN_OR_RETURN(FileReader file, FileReader::Open(path));
    file_.emplace(std::move(file));
  }
  return &*file_;
}

}  // namespace pipec
