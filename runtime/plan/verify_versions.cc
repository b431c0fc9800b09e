#include "runtime/plan/verify_versions.h"

#include <set>

#include "absl/strings/str_cat.h"

namespace pipec {

using plan::RankPlan;

bool HasRule(const RankPlan& p, int32_t tensor, plan::SlotRule rule) {
  const int slot_class = p.buffers(p.tensors(tensor).buffer()).slot_class();
  return slot_class >= 0 && p.slot_classes(slot_class).rule() == rule;
}

bool HasVersions(const RankPlan& p, int32_t tensor) { return HasRule(p, tensor, plan::VERSION); }

absl::Status CheckVersions(const RankPlan& p) {
  std::set<uint32_t> written;  // buffers
  for (int i = 0; i < p.programs_size(); ++i) {
    const bool update = p.programs(i).kind() == plan::UPDATE;
    for (const plan::Instruction& instruction : p.programs(i).instructions()) {
      auto bad = [&](absl::string_view fault) {
        return absl::InvalidArgumentError(
            absl::StrCat("program ", i, " '", instruction.name(), "': ", fault));
      };
      for (int32_t tensor : instruction.inputs()) {
        if (update && tensor >= 0 && HasVersions(p, tensor) && written.count(p.tensors(tensor).buffer()) != 0)
          return bad("reads a parameter after its update");
      }
      for (int32_t tensor : instruction.outputs()) {
        if (tensor < 0) continue;
        const plan::BufferKind kind = p.buffers(p.tensors(tensor).buffer()).kind();
        const bool learned = kind == plan::PARAMETER || kind == plan::OPTIMIZER_STATE;
        if (update && p.validates_late() && !HasVersions(p, tensor) && (learned || kind == plan::GRADIENT))
          return bad("writes over what it may have to read again");
        if (!HasVersions(p, tensor)) continue;
        if (learned != update) return bad("writes a weight version, which is not its to write");
        if (update && !written.insert(p.tensors(tensor).buffer()).second)
          return bad("updates a parameter again");
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace pipec
