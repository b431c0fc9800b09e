// Memory in flight: what the checker counts, against a count of its own, and the place at which a limit is passed.
#include "compiler/schedule/check_memory.h"

#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pipec {
namespace {

using ::testing::HasSubstr;

// The most bytes that a rank's stages keep at once in its first `actions`: by sets of microbatches.
int64_t CountedBytes(const Schedule& schedule, const std::vector<KeptBytes>& stages, int rank,
                     size_t actions) {
  std::vector<std::set<int>> inputs(stages.size()), weights(stages.size()), between(stages.size());
  int64_t most = 0;
  for (size_t k = 0; k < actions; ++k) {
    const Action& a = schedule.ranks[rank][k];
    const bool i = a.kind == ActionKind::kI || a.kind == ActionKind::kB;
    const bool w = a.kind == ActionKind::kW || a.kind == ActionKind::kB;
    if (a.kind == ActionKind::kF) inputs[a.stage].insert(a.microbatch), weights[a.stage].insert(a.microbatch);
    if (i) between[a.stage].insert(a.microbatch);
    int64_t bytes = 0;
    for (size_t s = 0; s < stages.size(); ++s) {
      bytes += inputs[s].size() * stages[s].until_input + weights[s].size() * stages[s].until_weight +
               between[s].size() * stages[s].between;
    }
    most = std::max(most, bytes);
    if (i) inputs[a.stage].erase(a.microbatch);
    if (w) weights[a.stage].erase(a.microbatch), between[a.stage].erase(a.microbatch);
  }
  return most;
}

// Every schedule, every limit between nothing and enough: refused at the first action that needs more, or not at all.
TEST(CheckMemory, RefusesAtTheFirstActionThatNeedsMore) {
  std::mt19937 random(1);
  int refused = 0;
  for (const ScheduleInfo& info : AllSchedules()) {
    if (info.late_updates) continue;  // their lists are no steps
    const Schedule schedule = *info.generate({3, info.default_virtual_stages, 6});
    ScheduleMemory memory;
    for (int s = 0; s < schedule.shape.stages(); ++s) {
      memory.stages.push_back({static_cast<int64_t>(random() % 5), static_cast<int64_t>(random() % 9),
                               static_cast<int64_t>(random() % 3)});
    }
    for (int r = 0; r < 3; ++r) memory.always.push_back(random() % 20);
    const std::vector<int64_t> kept = MostKept(schedule, memory.stages);
    int largest = 0;
    std::vector<int64_t> needs;
    for (int r = 0; r < 3; ++r) {
      EXPECT_EQ(kept[r], CountedBytes(schedule, memory.stages, r, schedule.ranks[r].size())) << info.name;
      needs.push_back(memory.always[r] + kept[r]);
      if (needs[r] > needs[largest]) largest = r;
    }
    for (int64_t limit = 0; limit <= needs[largest] + 1; ++limit) {
      memory.limits.assign(3, limit);
      const absl::Status status = CheckMemory(schedule, memory);
      ASSERT_EQ(status.ok(), limit >= needs[largest]) << info.name << " " << status;
      if (status.ok()) continue;
      EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
      size_t k = 0;
      const auto then = [&] {
        return memory.always[largest] + CountedBytes(schedule, memory.stages, largest, k);
      };
      while (then() <= limit) ++k;
      EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat(" ", then(), " bytes")));
      EXPECT_THAT(std::string(status.message()),
                  HasSubstr(k == 0 ? absl::StrCat("rank ", largest, " needs")
                                   : absl::StrCat("rank ", largest, ", position ", k - 1, ", ",
                                                  ToString(schedule.ranks[largest][k - 1]))));
      ++refused;
    }
  }
  EXPECT_GT(refused, 200);
}

TEST(CheckMemory, NamesLineAndCellOfAFile) {
  const Schedule schedule = *FromCsv("0F0,0F1,,0F2,0B0,0B1,0B2\n1F0,1B0,1F1,1B1,1F2,1B2\n", "own.csv");
  const absl::Status status = CheckMemory(schedule, {{{0, 100}, {0, 100}}, {50, 0}, {349, 1000}});
  EXPECT_EQ(
      status.message(),
      "schedule own.csv: rank 0, position 2, 0F2 (line 1, cell 4): 3 microbatches of stage 0 in flight: "
      "350 bytes, more than the limit of 349\n"
      "  rank 0:  0F0  0F1 >0F2< 0B0  0B1  0B2\n"
      "  rank 1:  1F0  1B0  1F1  1B1  1F2  1B2");
}

// What counts is how much a rank is beyond its own limit, not how much it needs.
TEST(CheckMemory, EachRankHasItsOwnLimit) {
  const Schedule schedule = *FromCsv("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n", "own.csv");
  const std::vector<KeptBytes> stages = {{0, 100}, {0, 30}};  // needs 200 and 30
  EXPECT_TRUE(CheckMemory(schedule, {stages, {0, 0}, {200, 30}}).ok());
  EXPECT_THAT(std::string(CheckMemory(schedule, {stages, {0, 0}, {200, 29}}).message()),
              HasSubstr("rank 1, position 0, 1F0"));
  EXPECT_THAT(std::string(CheckMemory(schedule, {stages, {0, 0}, {199, 10}}).message()),
              HasSubstr("1F0"));
}

}  // namespace
}  // namespace pipec
