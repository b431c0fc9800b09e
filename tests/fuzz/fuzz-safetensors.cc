// A safetensors file -> a refusal, or tensors that lie inside the file and whose layout, written again, is read again.
#include <cstdlib>
#include <vector>

#include "runtime/checkpoint/safetensors.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/memory_file.h"

namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static pipec::MemoryFile file("model.safetensors");
  file.Write(data, size);
  const absl::StatusOr<pipec::SafetensorsFile> read = pipec::SafetensorsFile::Open(file.path());
  if (!read.ok()) return 0;
  std::vector<pipec::SafetensorsTensor> tensors;
  unsigned sum = 0;
  for (const pipec::SafetensorsFile::Entry& entry : read->entries()) {
    Require(entry.offset >= 0 && entry.bytes >= 0 && entry.offset + entry.bytes <= static_cast<int64_t>(size));
    for (const char byte : read->Bytes(entry)) sum += static_cast<unsigned char>(byte);
    Require(read->Find(entry.name) == &entry);
    tensors.push_back({entry.name, entry.type});
  }
  Require(sum <= 255 * size);
  const absl::StatusOr<pipec::SafetensorsLayout> layout = pipec::LayOutSafetensors(tensors, read->metadata());
  Require(layout.ok() && layout->offsets.size() == tensors.size());
  return 0;
}
