#include "passes/nothing_fits.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/base/counted.h"
#include "runtime/base/least_memory.h"

namespace pipec {
namespace {

constexpr int kMostPlans = 4, kMostTries = 8;
// Of the limit, the least that one more try adds.
constexpr int64_t kSmallPart = 256;

// A limit under which the candidate is compiled; nothing if none below `most` is found.
std::optional<int64_t> Enough(const LackingMemory& lacking, int64_t most, PlanMaker& maker) {
  int64_t limit = lacking.least_bytes;
  for (int tries = 0; tries < kMostTries && limit < most; ++tries) {
    const absl::StatusOr<std::unique_ptr<Module>> module = maker.Compile(lacking.candidate, limit);
    if (module.ok()) return limit;
    const std::optional<int64_t> needed = LeastMemory(module.status());
    if (!needed) return std::nullopt;
    limit = std::max(*needed, limit + limit / kSmallPart + 1);
  }
  return std::nullopt;
}

std::string Range(const std::vector<int>& numbers, absl::string_view one, absl::string_view more) {
  const std::string last = Counted(numbers.back(), one, more);
  return numbers.size() == 1 ? last : absl::StrCat(numbers.front(), " to ", last);
}

// What they have, in words.
std::string MemoryOf(int ranks, PlanMaker& maker) {
  const absl::StatusOr<Cluster> cluster = maker.ClusterOf(ranks);
  if (!cluster.ok()) return "its devices";
  int64_t least = std::numeric_limits<int64_t>::max(), most = 0;
  for (const DeviceProfile& device : cluster->devices) {
    least = std::min(least, device.memory_bytes);
    most = std::max(most, device.memory_bytes);
  }
  return absl::StrCat(least, least < most ? absl::StrCat(" to ", most) : "", " bytes a device");
}

// Samples; 1 if it is not known.
int64_t SmallestMicrobatch(const PlanSpace& space, PlanMaker& maker) {
  const absl::StatusOr<std::unique_ptr<Module>> module = maker.BeforeCut(space.microbatches.back());
  return module.ok() ? (*module)->microbatch_size : 1;
}

}  // namespace

absl::Status NothingFits(const CompileOptions& options, const PlanSpace& space,
                         std::vector<LackingMemory> lacking, PlanMaker& maker) {
  std::stable_sort(lacking.begin(), lacking.end(), [](const LackingMemory& a, const LackingMemory& b) {
    return a.least_bytes < b.least_bytes;
  });
  int64_t least = std::numeric_limits<int64_t>::max();
  const PlanCandidate* leanest = nullptr;
  for (size_t k = 0; k < lacking.size() && k < kMostPlans; ++k) {
    if (const std::optional<int64_t> enough = Enough(lacking[k], least, maker)) {
      least = *enough;
      leanest = &lacking[k].candidate;
    }
  }
  std::string text = absl::StrCat("no plan of ", Range(space.ranks, "rank", "ranks"), " and ",
                                  Range(space.microbatches, "microbatch", "microbatches"), " fits ",
                                  MemoryOf(space.ranks.back(), maker));
  if (leanest) {
    absl::StrAppend(&text, "; ", least, " bytes a device would do, with --stages=", leanest->shape.ranks,
                    " --microbatches=", leanest->shape.microbatches, " --schedule=", leanest->schedule);
  }
  absl::StrAppend(
      &text, "; less is needed with ",
      options.mode == Mode::kTrain && options.recompute == Recompute::kNone ? "--recompute=auto, " : "",
      "more devices (--stages)",
      SmallestMicrobatch(space, maker) > 1 ? ", a smaller microbatch (--batch)" : "",
      options.mode == Mode::kTrain ? ", an optimizer with less state (--optimizer)" : "");
  const absl::Status status = absl::ResourceExhaustedError(text);
  return leanest ? WithLeastMemory(status, least) : status;
}

}  // namespace pipec
