// An npz file, a zip of npy files -> a refusal, or arrays whose bytes are as many as their types say, and the same once
// more after they have been written.
#include "runtime/data/npz.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static pipec::MemoryFile file("data.npz"), copy("copy.npz");
  file.Write(data, size);
  const absl::StatusOr<pipec::NamedArrays> arrays = pipec::ReadNpz(file.path(), {});
  if (!arrays.ok() || arrays->empty() || !pipec::WriteNpz(copy.path(), *arrays).ok()) return 0;
  const absl::StatusOr<pipec::NamedArrays> again = pipec::ReadNpz(copy.path(), {});
  pipec::Require(again.ok() && again->size() == arrays->size());
  for (const auto& [name, array] : *arrays) {
    const auto found = again->find(name);
    pipec::Require(found != again->end() && found->second.type == array.type && found->second.bytes == array.bytes);
  }
  return 0;
}
