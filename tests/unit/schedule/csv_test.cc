#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/schedule/schedule.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pipec {
namespace {

using ::testing::HasSubstr;

TEST(Csv, EveryScheduleAndBack) {
  for (const ScheduleInfo& info : AllSchedules()) {
    const ScheduleShape shape{3, info.default_virtual_stages, 6};
    const Schedule schedule = *info.generate(shape);
    const absl::StatusOr<Schedule> read = FromCsv(ToCsv(schedule), info.name);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->ranks, schedule.ranks) << info.name;
    EXPECT_EQ(read->rank_of_stage, schedule.rank_of_stage) << info.name;
    EXPECT_EQ(read->shape.virtual_stages, shape.virtual_stages);
    EXPECT_EQ(read->shape.microbatches, shape.microbatches);
  }
}

TEST(Csv, OlderNames) {
  const std::string expected = ToCsv(*FindSchedule("zb-h1")->generate({2, 1, 3}));
  // B for I, and no I at all.
  EXPECT_EQ(ToCsv(*FromCsv(absl::StrReplaceAll(expected, {{"I", "B"}}), "old")), expected);
  // One microbatch with its whole backward, as BW.
  EXPECT_EQ(ToCsv(*FromCsv("0F0,0F1,0B0,0W0,0BW1", "old")), "0F0,0F1,0I0,0W0,0B1\n");
  // New names: B is the whole.
  EXPECT_EQ(ToCsv(*FromCsv("0F0,0F1,0I0,0W0,0B1", "new")), "0F0,0F1,0I0,0W0,0B1\n");
}

TEST(Csv, EmptyCellsSpacesRaggedLinesAndMessages) {
  EXPECT_EQ(
      ToCsv(*FromCsv(
          "0UNSHARD, 0F0 ,0SEND_F0,,0RECV_B0,0B0,0REDUCE_GRAD,0RESHARD\r\n,1RECV_F0,1F0,1B0,1SEND_B0\n\n",
          "x")),
      "0F0,0B0\n1F0,1B0\n");
}

TEST(Csv, RefusesWhatIsNone) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "has no line"},
      {"0F0,0X0", "line 1, cell 2, '0X0'"},
      {"0F0,0B0\n1F0,1B", "line 2, cell 2, '1B'"},
      {"0F0,(0F1;0B0)", "OVERLAP_F_B"},
      {"0F0,(0B0;0F1)OVERLAP_F_B", "an F and a B"},
      {"0F0,NORM", "cell 2, 'NORM'"},
      {"0F2147483647,0B2147483647", "the file has only 2 actions"},
      {"2147483647F0", "the file has only 1 actions"},
      {"0F0,0B0\n0F1,0B1", "stage 0 stands on line 1 too"},
      {"0F0,0B0\n2F0,2B0", "stage 1 is on no line"},
      {"0F0,0B0,2F0,2B0\n1F0,1B0", "line 2 has 1 stages, line 1 has 2"},
      {"0F0,0B0\n\n1F0,1B0", "line 2 has 0 stages"},
  };
  for (const auto& [text, message] : cases) {
    const absl::StatusOr<Schedule> read = FromCsv(text, "x.csv");
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_THAT(std::string(read.status().message()), HasSubstr(message));
  }
}

// What is read in form, and refused for its order, at the place of the fault.
TEST(Csv, UnsoundOrdersAreRefusedAtTheirPlace) {
  const std::pair<const char*, const char*> cases[] = {
      {"0F0,0F1,0B0\n1F0,1F1,1B0,1B1", "rank 0 lacks 0B1"},
      {"0F0,0F1,0F1,0B0,0B1\n1F0,1F1,1B0,1B1", ">0F1< 0B0"},
      {"0F0,0F1,0B1,0B0\n1F0,1F1,1B0,1B1", "0B1 >0B0<"},
      {"0B0,0F0\n1F0,1B0", "rank 0: >0B0< 0F0"},
      {"0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1", "wait for each other"},
  };
  for (const auto& [text, message] : cases) {
    const absl::StatusOr<Schedule> read = FromCsv(text, "x.csv");
    ASSERT_TRUE(read.ok()) << read.status();
    const absl::Status status = CheckSchedule(*read, {});
    ASSERT_FALSE(status.ok()) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
}

}  // namespace
}  // namespace pipec
