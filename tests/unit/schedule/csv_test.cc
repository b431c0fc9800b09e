#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/schedule/schedule.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/schedule/rendezvous.h"

namespace pipec {
namespace {

using ::testing::HasSubstr;

TEST(Csv, EveryScheduleAndBack) {
  int written = 0;
  for (const ScheduleInfo& info : AllSchedules()) {
    for (const ScheduleShape& shape : {ScheduleShape{1, 1, 1},
                                       {1, 2, 5},
                                       {2, 1, 1},
                                       {2, 2, 4},
                                       {3, 1, 7},
                                       {3, 2, 6},
                                       {2, 3, 4},
                                       {4, 2, 8},
                                       {8, 1, 12},
                                       {8, 2, 32},
                                       {11, 1, 11}}) {
      const absl::StatusOr<Schedule> schedule = info.generate(shape);
      if (!schedule.ok() || info.late_updates) continue;  // the form has no steps
      SCOPED_TRACE(
          absl::StrCat(info.name, " ", shape.ranks, " ", shape.virtual_stages, " ", shape.microbatches));
      const absl::StatusOr<Schedule> read = FromCsv(ToCsv(*schedule), info.name);
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_EQ(read->ranks, schedule->ranks);
      EXPECT_EQ(read->rank_of_stage, schedule->rank_of_stage);
      EXPECT_EQ(read->shape.ranks, shape.ranks);
      EXPECT_EQ(read->shape.virtual_stages, shape.virtual_stages);
      EXPECT_EQ(read->shape.microbatches, shape.microbatches);
      // Messages are not written: others place their own.
      const int S = shape.stages();
      const auto with =
          AddMessages(*schedule, ChainLinks(S, {}, 0, !info.forward_only), std::vector<StageTimes>(S));
      ASSERT_TRUE(with.ok()) << with.status();
      EXPECT_EQ(ToCsv(*with), ToCsv(*schedule));
      ++written;
    }
  }
  EXPECT_GT(written, 60);
}

// PyTorch's other form: what its runtime does is in it, messages by the stage on this line. Here from a schedule's own
// messages, written as PyTorch writes them.
TEST(Csv, WithMessages) {
  for (const ScheduleInfo& info : AllSchedules()) {
    const ScheduleShape shape{3, info.default_virtual_stages, 6};
    if (info.late_updates) continue;
    const Schedule compute = *info.generate(shape);
    const int S = shape.stages();
    const Schedule schedule =
        *AddMessages(compute, ChainLinks(S, {}, 0, !info.forward_only), std::vector<StageTimes>(S));
    std::string text;
    for (const auto& list : schedule.ranks) {
      absl::StrAppend(&text, list[0].stage, "UNSHARD");
      for (size_t k = 0; k < list.size(); ++k) {
        // A pair is one cell: what is between its halves goes before it.
        if (list[k].paired) {
          size_t b = k + 1;
          for (; list[b].kind != ActionKind::kB; ++b) absl::StrAppend(&text, ",", ToString(list[b]));
          absl::StrAppend(&text, ",(", ToString(list[k]), ";", ToString(list[b]), ")OVERLAP_F_B");
          k = b;
        } else {
          absl::StrAppend(&text, ",", ToString(list[k]));
        }
      }
      absl::StrAppend(&text, ",", list[0].stage, "REDUCE_GRAD,", list[0].stage, "RESHARD\n");
    }
    const absl::StatusOr<Schedule> read = FromCsv(text, info.name);
    ASSERT_TRUE(read.ok()) << info.name << " " << read.status();
    EXPECT_EQ(ToCsv(*read), ToCsv(compute)) << info.name;
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
  const std::string expected = "0F0,0B0\n1F0,1B0\n";
  for (const char* text : {
           "0UNSHARD, 0F0 ,0SEND_F0,,0RECV_B0,0B0,0REDUCE_GRAD,0RESHARD\r\n,1RECV_F0,1F0,1B0,1SEND_B0\n\n",
           "0F0,0B0\n1F0,1B0",            // no line break at the end
           "0F0,0B0\r\n1F0,1B0\r\n\r\n",  // another system's line breaks
           "\xEF\xBB\xBF"
           "0F0,0B0\n1F0,1B0\n",         // a byte order mark
           "0F0,0B0,,,,\n,,1F0,,1B0\n",  // a table with waits
           "\t0F0\t,0B0\n  1F0,1B0  \n",
           "0F0,0B0,0REDUCE_GRAD3\n1F0,1B0\n",
       }) {
    const absl::StatusOr<Schedule> read = FromCsv(text, "x");
    ASSERT_TRUE(read.ok()) << text << read.status();
    EXPECT_EQ(ToCsv(*read), expected) << text;
  }
  EXPECT_EQ(ToCsv(*FromCsv("0F0,0F1,1F0,(0F2;1B0)OVERLAP_F_B,1F1,1B1,1F2,1B2,0B0,0B1,0B2", "x")),
            "0F0,0F1,1F0,(0F2;1B0)OVERLAP_F_B,1F1,1B1,1F2,1B2,0B0,0B1,0B2\n");
}

TEST(Csv, RefusesWhatIsNone) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "has no line"},
      {"0F0,0X0", "line 1, cell 2, '0X0'"},
      {"0F0,0B0\n1F0,1B", "line 2, cell 2, '1B'"},
      {"0F0,(0F1;0B0)", "OVERLAP_F_B"},
      {"0F0,(0B0;0F1)OVERLAP_F_B", "an F and a B"},
      {"0F0,NORM", "cell 2, 'NORM'"},
      {"0F0,,UNSHARD", "cell 3, 'UNSHARD'"},
      {"0F0,0UNSHARDED", "cell 2, '0UNSHARDED'"},
      {"0F0,0SEND_F0>1", "cell 2, '0SEND_F0>1'"},
      {"0F0,0UPDATE", "cell 2, '0UPDATE'"},
      {"0F0;0B0", "cell 1, '0F0;0B0'"},
      {"0F0,(0F1;0B0;0F2)OVERLAP_F_B", "OVERLAP_F_B"},
      {"0F0,(0F1;0I0)OVERLAP_F_B", "an F and a B"},
      {"0F-1", "cell 1, '0F-1'"},
      {"0F2147483647,0B2147483647", "the file has only 2 actions"},
      {"2147483647F0", "the file has only 1 action, so"},
      {"0F0,0B0\n,0F1,0B1", "line 2, cell 2, 0F1: stage 0 stands on line 1 too"},
      {"0F0,0B0\n2F0,2B0", "stage 1 is on no line"},
      {"0F0,0B0,2F0,2B0\n1F0,1B0", "line 2 has 1 stage, line 1 has 2"},
      {"0F0,0B0\n\n1F0,1B0", "line 2 has 0 stages"},
  };
  for (const auto& [text, message] : cases) {
    const absl::StatusOr<Schedule> read = FromCsv(text, "x.csv");
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_THAT(std::string(read.status().message()), HasSubstr(message));
  }
}

// What is read in form, and refused for its order: at the line and cell of the fault, as an editor counts them, and
// in the grid, whatever empty cells and messages of others are in between.
TEST(Csv, UnsoundOrdersAreRefusedAtTheirCell) {
  struct Fault {
    const char *text, *place, *what, *row;
  };
  const Fault faults[] = {
      {"0F0,0F1,0B0\n1F0,1F1,1B0,1B1", "rank 0, position 2, 0B0 (line 1, cell 3)", "0B1 is missing behind it",
       "rank 0:  0F0  0F1 >0B0<"},
      {"0F0,2F0,2B0,0B0\n1F0,,3F0,1B0", "rank 1, position 1, 3F0 (line 2, cell 3)",
       "3B0 is missing behind it", "rank 1:  1F0 >3F0< 1B0"},
      {"0F0,0F1,0SEND_F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1", "rank 0, position 2, 0F1 (line 1, cell 4)",
       "stands there twice", "rank 0:  0F0  0F1 >0F1< 0B0  0B1"},
      {"0F0,,0F1,,,0B1,0B0\n1F0,1F1,1B0,1B1", "rank 0, position 3, 0B0 (line 1, cell 7)",
       "comes after microbatch 1", "rank 0:  0F0  0F1  0B1 >0B0<"},
      {"0F0,0B0\n,1B0,1F0", "rank 1, position 0, 1B0 (line 2, cell 2)", "before its F", "rank 1: >1B0< 1F0"},
      {"0F0,0W0,0I0\n1F0,1B0", "rank 0, position 1, 0W0 (line 1, cell 2)", "before its I",
       "rank 0:  0F0 >0W0< 0I0"},
      {"0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1", "rank 0, position 1, 0B0 (line 1, cell 2), for rank 1",
       "wait for each other", "rank 0:  0F0 >0B0< 0F1  0B1\n  rank 1:  1F0 >1F1< 1B0  1B1"},
  };
  for (const auto& [text, place, what, row] : faults) {
    const absl::StatusOr<Schedule> read = FromCsv(text, "x.csv");
    ASSERT_TRUE(read.ok()) << read.status();
    const absl::Status status = CheckSchedule(*read, {});
    ASSERT_FALSE(status.ok()) << text;
    for (const char* part : {place, what, row}) EXPECT_THAT(std::string(status.message()), HasSubstr(part));
  }
}

}  // namespace
}  // namespace pipec
