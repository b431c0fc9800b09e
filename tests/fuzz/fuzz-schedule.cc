// PyTorch's CSV -> a refusal, or a schedule that can be written, read again, given messages and simulated.
#include <vector>

#include "absl/strings/string_view.h"
#include "compiler/schedule/schedule.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

void ReadAll(absl::string_view text) {
  const absl::StatusOr<pipec::Schedule> schedule = pipec::FromCsv(text, "fuzzed.csv");
  if (!schedule.ok() || !pipec::CheckSchedule(*schedule, {}).ok()) return;
  const absl::StatusOr<pipec::Schedule> again = pipec::FromCsv(pipec::ToCsv(*schedule), "again.csv");
  pipec::Require(again.ok() && again->ranks == schedule->ranks && again->rank_of_stage == schedule->rank_of_stage);
  bool forward_only = true;
  for (const auto& list : schedule->ranks) {
    for (const pipec::Action& action : list) forward_only &= action.kind == pipec::ActionKind::kF;
  }
  std::vector<pipec::StageLink> links;
  for (int s = 0; s + 1 < schedule->shape.stages(); ++s) {
    links.push_back({s, s + 1});
    if (!forward_only) links.push_back({s + 1, s});
  }
  const std::vector<pipec::StageTimes> times(schedule->shape.stages());
  const absl::StatusOr<pipec::Schedule> with = pipec::AddMessages(*schedule, links, times);
  pipec::Require(with.ok() && pipec::CheckSchedule(*with, links).ok() && pipec::Simulate(*with, links, times).ok());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ReadAll({reinterpret_cast<const char*>(data), size});
  return 0;
}
