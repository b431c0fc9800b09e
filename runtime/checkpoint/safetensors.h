// The safetensors format: u64 little-endian header length N, N bytes of JSON, then the tensors' bytes without
// holes. Strict reader (every rule of the format is checked before a byte of a tensor is read), streaming
// writer.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/tensor_type.h"

namespace pipec {

struct SafetensorsTensor {
  std::string name;
  TensorType type;
};

// Where everything lies in a file that holds `tensors` in this order.
struct SafetensorsLayout {
  std::string header;            // the file's first bytes: length and JSON; a multiple of 64
  std::vector<int64_t> offsets;  // of each tensor, from the start of the file
  int64_t file_bytes = 0;
};
// Metadata becomes `__metadata__`. Errors: two tensors of one name, the name `__metadata__`, a type the
// format has not.
absl::StatusOr<SafetensorsLayout> LayOutSafetensors(absl::Span<const SafetensorsTensor> tensors,
                                                    const std::map<std::string, std::string>& metadata = {});

class SafetensorsFile {
 public:
  struct Entry {
    std::string name;
    TensorType type;
    int64_t offset = 0;  // from the start of the file
    int64_t bytes = 0;
  };

  // Errors name the file and the tensor at fault.
  static absl::StatusOr<SafetensorsFile> Open(const std::string& path);

  // In file order (by offset, then by name).
  absl::Span<const Entry> entries() const { return entries_; }
  const Entry* Find(absl::string_view name) const;
  absl::string_view Bytes(const Entry& entry) const {
    return file_.bytes().substr(entry.offset, entry.bytes);
  }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::string& path() const { return file_.path(); }

 private:
  explicit SafetensorsFile(MappedFile file) : file_(std::move(file)) {}
  absl::Status ReadHeader();

  MappedFile file_;
  std::vector<Entry> entries_;
  absl::flat_hash_map<std::string, int> index_;
  std::map<std::string, std::string> metadata_;
};

// Writes a file tensor by tensor, in the order given to Create; it appears whole at Finish.
class SafetensorsWriter {
 public:
  static absl::StatusOr<SafetensorsWriter> Create(const std::string& path,
                                                  absl::Span<const SafetensorsTensor> tensors,
                                                  const std::map<std::string, std::string>& metadata = {});
  // The next bytes of the buffer; pieces need not end where tensors do.
  absl::Status Append(absl::string_view bytes);
  // FailedPrecondition if fewer or more bytes were appended than the tensors have.
  absl::Status Finish();

 private:
  SafetensorsWriter(AtomicFile file, int64_t wanted) : file_(std::move(file)), wanted_(wanted) {}

  AtomicFile file_;
  int64_t wanted_;
  int64_t written_ = 0;
};

}  // namespace pipec
