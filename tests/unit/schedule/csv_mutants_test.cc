// Files that somebody broke: whatever is in them, reading ends with a status or with a schedule that the rest can take.
#include <algorithm>
#include <fstream>
#include <random>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler/schedule/schedule.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/schedule/sound.h"

namespace pipec {
namespace {

std::vector<std::string> Files() {
  std::vector<std::string> files;
  for (const char* name : {"1f1b_p4_m8", "dualpipe-v_p4_m8", "zb1p_2rank_2stagep_compute"}) {
    std::ifstream file(absl::StrCat(PIPEC_SOURCE_DIR, "/tests/data/schedules/", name, ".csv"));
    std::stringstream text;
    text << file.rdbuf();
    EXPECT_FALSE(text.str().empty()) << name;
    files.push_back(text.str());
  }
  for (const ScheduleInfo& info : AllSchedules()) {
    if (info.late_updates) continue;  // no form for them
    files.push_back(ToCsv(*info.generate({2, info.default_virtual_stages, 4})));
    files.push_back(ToCsv(*info.generate({1, info.default_virtual_stages, 2})));
  }
  return files;
}

// Whether it was read, and if it was, what became of it.
enum class Fate { kUnread, kUnsound, kSound };

Fate Read(const std::string& text) {
  const absl::StatusOr<Schedule> schedule = FromCsv(text, "broken.csv");
  if (!schedule.ok()) {
    EXPECT_EQ(schedule.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(schedule.status().message()), testing::StartsWith("schedule broken.csv"));
    return Fate::kUnread;
  }
  const int S = schedule->shape.stages();
  bool forward_only = true;
  for (const auto& list : schedule->ranks) {
    for (const Action& action : list) forward_only &= action.kind == ActionKind::kF;
  }
  const absl::Status status = CheckSchedule(*schedule, {});
  const std::vector<StageLink> links = ChainLinks(S, {}, 0, !forward_only);
  EXPECT_EQ(status.ok(), IsSound(*schedule, links, forward_only, false)) << text << status;
  if (!status.ok()) return Fate::kUnsound;
  EXPECT_EQ(FromCsv(ToCsv(*schedule), "again")->ranks, schedule->ranks) << text;
  const auto with = AddMessages(*schedule, links, std::vector<StageTimes>(S));
  EXPECT_TRUE(with.ok() && CheckSchedule(*with, links).ok()) << text;
  return Fate::kSound;
}

TEST(CsvMutants, BytesOfAFile) {
  constexpr char kBytes[] = "0123456789FBIWSENDRV_,;()\r\n \t-+\xFF";
  const std::vector<std::string> files = Files();
  std::mt19937 random(1);
  int fates[3] = {};
  for (int round = 0; round < 4000; ++round) {
    std::string text = files[random() % files.size()];
    for (size_t faults = 1 + random() % 3; faults > 0 && !text.empty(); --faults) {
      const size_t k = random() % text.size();
      const char byte = kBytes[random() % sizeof(kBytes)];  // the zero at its end included
      switch (random() % 4) {
        case 0:
          text[k] = byte;
          break;
        case 1:
          text.insert(k, 1, byte);
          break;
        case 2:
          text.erase(k, 1);
          break;
        case 3:
          text.erase(k, random() % (text.size() / 4 + 1));
          break;
      }
    }
    ++fates[static_cast<int>(Read(text))];
  }
  for (Fate fate : {Fate::kUnread, Fate::kUnsound, Fate::kSound})
    EXPECT_GT(fates[static_cast<int>(fate)], 100);
}

TEST(CsvMutants, CellsOfAFile) {
  const std::vector<std::string> files = Files();
  std::mt19937 random(2);
  int fates[3] = {};
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::vector<std::string>> lines;
    for (const auto line : absl::StrSplit(files[random() % files.size()], '\n')) {
      lines.push_back(absl::StrSplit(line, ','));
    }
    for (size_t faults = 1 + random() % 2; faults > 0; --faults) {
      std::vector<std::string>& line = lines[random() % lines.size()];
      std::vector<std::string>& other = lines[random() % lines.size()];
      const size_t k = random() % line.size();
      switch (random() % 5) {
        case 0:
          std::swap(line[k], other[random() % other.size()]);
          break;
        case 1:
          other.push_back(std::string(line[k]));
          break;
        case 2:
          line[k].clear();
          break;
        case 3:
          std::swap(line, other);
          break;
        case 4:
          std::swap(line[k], line[random() % line.size()]);
          break;
      }
    }
    std::vector<std::string> joined;
    for (const auto& line : lines) joined.push_back(absl::StrJoin(line, ","));
    ++fates[static_cast<int>(Read(absl::StrJoin(joined, "\n")))];
  }
  for (Fate fate : {Fate::kUnread, Fate::kUnsound, Fate::kSound})
    EXPECT_GT(fates[static_cast<int>(fate)], 50);
}

// A few cells of large numbers, and large files of few: neither time nor memory out of proportion.
TEST(CsvMutants, LargeNumbers) {
  std::string diagonal, column;
  for (int k = 0; k < 20000; ++k) {
    absl::StrAppend(&diagonal, k ? "," : "", k, "F", k);
    absl::StrAppend(&column, "0F", k, ",");
  }
  EXPECT_EQ(Read(diagonal), Fate::kUnsound);
  absl::StrAppend(&column, "1F19999");
  EXPECT_EQ(Read(column), Fate::kUnsound);
  EXPECT_EQ(Read("0F2147483647,0B2147483647"), Fate::kUnread);
  EXPECT_EQ(Read(std::string(1 << 20, ',')), Fate::kUnread);
  EXPECT_EQ(Read(std::string(1 << 16, '\n') + "0F0"), Fate::kUnread);
}

}  // namespace
}  // namespace pipec
