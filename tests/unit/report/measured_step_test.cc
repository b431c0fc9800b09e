#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "compiler/report/step_picture.h"
#include "tests/unit/report/two_ranks.h"

namespace pipec {
namespace {

using nlohmann::json;
using testing::HasSubstr;

json Event(const std::string& cat, int rank, int stage, int microbatch, int step, double start, double end) {
  return {{"name", "any"},      {"cat", cat},
          {"ph", "X"},          {"ts", start},
          {"dur", end - start}, {"pid", rank},
          {"tid", 0},           {"args", {{"step", step}, {"stage", stage}, {"microbatch", microbatch}}}};
}

class MeasuredStepTest : public testing::Test {
 protected:
  MeasuredStepTest() {
    FillTwoRanks(module_);
    events_.push_back({{"ph", "M"}, {"name", "process_name"}, {"pid", 0}, {"args", {{"name", "rank 0"}}}});
    AddStep(1, 0, 2);
    AddStep(2, 1000, 10);
    AddStep(3, 5000, 1);
  }

  // Microseconds; the module's order of actions, every one `length` long, the second rank one behind.
  void AddStep(int step, double begin, double length) {
    for (int rank : {0, 1}) {
      double now = begin + rank * length;
      using Order = std::vector<std::pair<const char*, int>>;
      for (const auto& [kind, microbatch] : rank == 0 ? Order{{"F", 0}, {"F", 1}, {"B", 0}, {"B", 1}}
                                                      : Order{{"F", 0}, {"B", 0}, {"F", 1}, {"B", 1}}) {
        events_.push_back(Event(kind, rank, rank, microbatch, step, now, now + length));
        now += length;
      }
      events_.push_back(Event("NORM", rank, -1, -1, step, now, now + length));
      if (rank == 0) events_.push_back(Event("UPDATE", 0, 0, -1, step, now + length, now + 2 * length));
    }
    json sent = Event("SEND_F", 0, 0, 1, step, begin + 2 * length, begin + 2 * length);
    json waited = Event("wait", 1, 1, 1, step, begin + 2 * length, begin + 2.5 * length);
    for (json* event : {&sent, &waited}) {
      (*event)["args"]["from_stage"] = 0;
      (*event)["args"]["to_stage"] = 1;
      events_.push_back(*event);
    }
  }

  absl::StatusOr<StepPicture> Read() {
    return MeasuredStep(json{{"traceEvents", events_}}.dump(), "t.json", module_);
  }
  std::string Refusal() { return std::string(Read().status().message()); }

  Module module_;
  json events_ = json::array();
};

TEST_F(MeasuredStepTest, AnotherScheduleIsRefused) {
  // Rank 1 does all its forwards first, as in gpipe.
  std::swap(module_.schedule.ranks[1][1], module_.schedule.ranks[1][2]);
  EXPECT_THAT(Refusal(),
              HasSubstr("rank 1 does 1B0 where schedule 1f1b has 1F1; the trace is of another schedule"));
  module_.schedule.weight_delay = {1, 0};
  EXPECT_THAT(Refusal(), HasSubstr("overlap"));
}

TEST_F(MeasuredStepTest, TheStepOfMedianLength) {
  const absl::StatusOr<StepPicture> picture = Read();
  ASSERT_TRUE(picture.ok()) << picture.status();
  EXPECT_EQ(picture->times, "measured");
  EXPECT_EQ(picture->step, 1);
  EXPECT_NEAR(picture->step_seconds, 12e-6, 1e-12);
  ASSERT_EQ(picture->ranks[0].size(), 6);
  EXPECT_EQ(ToString(picture->ranks[0][2].action), "0B0");
  EXPECT_NEAR(picture->ranks[0][2].start, 4e-6, 1e-12);
  EXPECT_NEAR(picture->ranks[0][2].end, 6e-6, 1e-12);
  EXPECT_EQ(ToString(picture->ranks[0][5].action), "0UPDATE");
  EXPECT_NEAR(picture->ranks[1][0].start, 2e-6, 1e-12);
  // Four actions of 2 us on both ranks, the last over after 10 us.
  EXPECT_NEAR(picture->bubble_ratio, 1 - 16.0 / 20, 1e-9);
  ASSERT_EQ(picture->messages.size(), 1);
  EXPECT_EQ(picture->messages[0].microbatch, 1);
  EXPECT_NEAR(picture->messages[0].sent, 4e-6, 1e-12);
  EXPECT_NEAR(picture->messages[0].arrived, 5e-6, 1e-12);
  EXPECT_EQ(picture->links[picture->messages[0].link].bytes, 32);
}

TEST_F(MeasuredStepTest, TracesOfSomethingElseAreRefused) {
  events_.push_back(Event("F", 0, 0, 1, 1, 8, 9));
  EXPECT_THAT(Refusal(), HasSubstr("t.json: step 1: rank 0 has 0F1 more often than the plan"));
  events_.erase(events_.end() - 1);
  events_.push_back(Event("F", 2, 2, 1, 1, 8, 9));
  EXPECT_THAT(Refusal(), HasSubstr("rank 2 is none of the plan's 2"));
  events_.erase(events_.end() - 1);
  events_.erase(3);
  EXPECT_THAT(Refusal(), HasSubstr("step 1: rank 0 lacks 0B0"));
  events_.clear();
  EXPECT_THAT(Refusal(), HasSubstr("holds no step of a run"));
  EXPECT_THAT(std::string(MeasuredStep("[]", "t.json", module_).status().message()),
              HasSubstr("t.json is no Chrome trace"));
  EXPECT_THAT(std::string(MeasuredStep("\xff", "t.json", module_).status().message()),
              HasSubstr("t.json is no Chrome trace"));
}

TEST_F(MeasuredStepTest, AnyBytesAreReadOrRefused) {
  std::mt19937 random(1);
  const std::string whole = json{{"traceEvents", events_}}.dump();
  for (int k = 0; k < 3000; ++k) {
    std::string bytes = whole;
    for (int changes = 1 + k % 3; changes > 0; --changes) {
      const size_t at = random() % bytes.size();
      switch (random() % 3) {
        case 0:
          bytes[at] = "0123456789-.eE\",:[]{}"[random() % 21];
          break;
        case 1:
          bytes.erase(at, random() % 40);
          break;
        default:
          bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 40));
      }
      if (bytes.empty()) break;
    }
    const absl::StatusOr<StepPicture> picture = MeasuredStep(bytes, "t.json", module_);
    if (!picture.ok()) {
      EXPECT_EQ(picture.status().code(), absl::StatusCode::kInvalidArgument);
      continue;
    }
    for (const auto& list : picture->ranks) {
      for (const SimulatedAction& slice : list) EXPECT_LE(slice.start, slice.end);
    }
  }
}

}  // namespace
}  // namespace pipec
