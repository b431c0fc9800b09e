// ONNX text syntax -> a module that its verifier accepts, or a refusal.
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/import_bytes.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static pipec::MemoryFile file("model.onnxtxt");
  pipec::ImportBytes(file, data, size);
  return 0;
}
