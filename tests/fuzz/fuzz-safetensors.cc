// A safetensors file -> a refusal, or tensors that lie inside the file and whose layout, written again, is read again.
#include <vector>

#include "runtime/checkpoint/safetensors.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/memory_file.h"

// So that every byte is read.
static volatile char read_last;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static pipec::MemoryFile file("model.safetensors");
  file.Write(data, size);
  const absl::StatusOr<pipec::SafetensorsFile> read = pipec::SafetensorsFile::Open(file.path());
  if (!read.ok()) return 0;
  std::vector<pipec::SafetensorsTensor> tensors;
  int64_t bytes = 0;
  for (const pipec::SafetensorsFile::Entry& entry : read->entries()) {
    pipec::Require(entry.offset >= 0 && entry.bytes >= 0 && entry.offset + entry.bytes <= static_cast<int64_t>(size));
    for (const char byte : read->Bytes(entry)) read_last = byte;
    bytes += entry.bytes;
    pipec::Require(read->Find(entry.name) == &entry);
    tensors.push_back({entry.name, entry.type});
  }
  pipec::Require(bytes <= static_cast<int64_t>(size));  // no two share any
  const absl::StatusOr<pipec::SafetensorsLayout> layout = pipec::LayOutSafetensors(tensors, read->metadata());
  pipec::Require(layout.ok() && layout->offsets.size() == tensors.size());
  return 0;
}
