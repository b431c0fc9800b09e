#include "tests/fuzz/import_bytes.h"

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "compiler/ir/verify.h"
#include "compiler/onnx/import.h"
#include "passes/evaluate.h"
#include "passes/passes.h"

namespace pipec {
namespace {

void MustHold(const Module& module, const char* after) {
  const absl::Status status = Verify(module);
  if (status.ok()) return;
  std::fprintf(stderr, "after %s: %s\n", after, std::string(status.message()).c_str());
  std::abort();
}

}  // namespace

void ImportBytes(MemoryFile& file, const uint8_t* data, size_t size) {
  file.Write(data, size);
  ImportOptions options;
  options.evaluate = Evaluate;
  options.max_copies = 2000;  // a fuzzer would do little else than unroll loops
  const absl::StatusOr<std::unique_ptr<Module>> module = ImportModel(file.path(), options);
  if (!module.ok()) return;
  MustHold(**module, "import");
  if (FoldConstants(**module, PassContext()).ok()) MustHold(**module, "folding");
}

}  // namespace pipec
