#include "runtime/base/file_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
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
      const int64_t hole = HoleAt(offset + filled, wanted - filled);
      if (hole > 0) std::memset(buffer_.get() + filled, 0, hole);
      const ssize_t got =
          hole > 0 ? hole : pread(fd_, buffer_.get() + filled, wanted - filled, offset + filled);
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

// Zeros without a place on the disk: read like all others, each would cost the kernel a page of memory.
int64_t FileReader::HoleAt(int64_t offset, int64_t most) {
  if (offset < data_begin_ || offset >= data_end_) {
    data_begin_ = lseek(fd_, offset, SEEK_DATA);
    data_end_ = data_begin_ < 0 ? -1 : lseek(fd_, data_begin_, SEEK_HOLE);
    if (data_end_ < 0) {
      // No data up to the end, or a file system that does not tell.
      const bool none = errno == ENXIO;
      data_begin_ = none ? std::max(bytes_, offset) : 0;
      data_end_ = std::numeric_limits<int64_t>::max();
    }
  }
  return std::min(std::max<int64_t>(data_begin_ - offset, 0), most);
}

absl::StatusOr<FileReader*> FileSequence::Open(const std::string& path) {
  if (!file_ || file_->path() != path) {
    ASSIGN_OR_RETURN(FileReader file, FileReader::Open(path));
    file_.emplace(std::move(file));
  }
  return &*file_;
}

}  // namespace pipec
