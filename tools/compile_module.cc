#include "tools/compile_module.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "passes/pass_manager.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

constexpr int kTries = 5;
// Of the limit, the least that one more try leaves free.
constexpr int64_t kSmallPart = 256;

// What a rank keeps over a step: the cut counted about as much.
int64_t KeptBytes(const RankMemory& memory) {
  std::map<int64_t, int64_t> bytes_at;  // by offset, which buffers that take turns share
  for (const Buffer& buffer : memory.buffers) {
    if (buffer.kind != BufferKind::kTransient && buffer.kind != BufferKind::kMessage)
      bytes_at[buffer.offset] = buffer.slots * buffer.stride();
  }
  int64_t bytes = 0;
  for (const auto& [offset, size] : bytes_at) bytes += size;
  return bytes;
}

// By rank: how much more of its memory the cut has to leave free, so that next time there is room for what it does not
// count; the more, the more often that was not enough. Nothing if memory was not laid out.
std::vector<int64_t> MissingBytes(const Module& module, const CompileOptions& options, int tries) {
  std::vector<int64_t> missing;
  for (size_t r = 0; r < module.memory.size(); ++r) {
    const int64_t limit = options.cluster.devices[r].memory_bytes;
    const int64_t beyond = std::max<int64_t>(module.memory[r].arena_bytes - limit, 0);
    const int64_t held_back = r < options.held_back.size() ? options.held_back[r] : 0;
    const int64_t uncounted = std::max<int64_t>(limit - held_back - KeptBytes(module.memory[r]), 0);
    missing.push_back(beyond == 0 ? 0 : uncounted + (std::max(beyond, limit / kSmallPart) << (tries - 1)));
  }
  return missing;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Module>> CompileModule(CompileFlags& flags,
                                                      absl::FunctionRef<absl::Status(Module&)> lower) {
  for (int tries = 1;; ++tries) {
    ASSIGN_OR_RETURN(std::unique_ptr<Module> module, flags.Import());
    const absl::Status lowered = lower(*module);
    if (lowered.ok()) return module;
    if (!absl::IsResourceExhausted(lowered)) return lowered;
    std::vector<int64_t> missing;
    if (tries < kTries) missing = MissingBytes(*module, flags.context().options, tries);
    if (missing.empty()) tries = kTries;
    if (!flags.TakeLess(missing)) return lowered;
  }
}

absl::StatusOr<std::unique_ptr<Module>> CompileModule(CompileFlags& flags) {
  return CompileModule(flags, [&flags](Module& module) { return RunPipeline(module, flags.context()); });
}

}  // namespace pipec
