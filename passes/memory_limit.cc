#include "passes/memory_limit.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "runtime/base/least_memory.h"

namespace pipec {

std::vector<int64_t> MemoryLimits(const Cluster& cluster) {
  std::vector<int64_t> limits;
  for (const DeviceProfile& device : cluster.devices)
    limits.push_back(device.memory_bytes > 0 ? device.memory_bytes : std::numeric_limits<int64_t>::max());
  return limits;
}

void AddKept(const std::set<ActionOf>& actions, int64_t bytes, std::vector<KeptBytes>& stages) {
  bool forward = false;
  int input = -1, weight = -1;  // stages
  for (const auto& [kind, stage, peer] : actions) {
    forward |= kind == ActionKind::kF;
    if (kind == ActionKind::kI || kind == ActionKind::kB) input = stage;
    if (kind == ActionKind::kW) weight = stage;
  }
  if (forward && weight >= 0) {
    stages[weight].until_weight += bytes;
  } else if (forward && input >= 0) {
    stages[input].until_input += bytes;
  } else if (input >= 0 && weight >= 0) {
    stages[weight].between += bytes;
  }
}

absl::Status CheckMemoryLimit(const Module& module, const CompileOptions& options,
                              std::vector<KeptBytes> kept) {
  ScheduleMemory memory{std::move(kept), {}, MemoryLimits(options.cluster)};
  const std::vector<int64_t> in_flight = MostKept(module.schedule, memory.stages);
  const auto needed = [&](int r) { return module.memory[r].needed_bytes(); };
  const auto beyond = [&](int r) { return needed(r) - memory.limits[r]; };
  int worst = 0;
  for (int r = 0; r < static_cast<int>(module.memory.size()); ++r) {
    memory.always.push_back(needed(r) - in_flight[r]);
    if (beyond(r) > beyond(worst)) worst = r;
  }
  const absl::Status status = CheckMemory(module.schedule, memory);
  if (status.ok()) return status;
  const bool training = module.mode == Mode::kTrain;
  return WithLeastMemory(
      absl::ResourceExhaustedError(absl::StrCat(
          "rank ", worst, " needs ", needed(worst),
          " bytes of memory when cut so, the limit of its device is ", memory.limits[worst],
          " (--memory); less is needed with ",
          options.recompute == Recompute::kNone && training ? "--recompute=auto, " : "", "more --stages",
          module.microbatch_size > 1 ? absl::StrCat(training ? "," : " or",
                                                    " a smaller microbatch (--batch, --microbatches)")
                                     : "",
          training ? " or an optimizer with less state" : "", "\n", status.message())),
      needed(worst));
}

}  // namespace pipec
