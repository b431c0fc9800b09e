#include "compiler/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "compiler/cost/measured_costs.h"
#include "tests/unit/report/two_ranks.h"

namespace pipec {
namespace {

using nlohmann::json;

Cluster TestCluster() {
  DeviceProfile device;
  device.name = "cpu";
  device.link = {0.5, 1e30};
  return EqualDevices(device, 2);
}

class ReportTest : public testing::Test {
 protected:
  ReportTest() {
    FillTwoRanks(module_);
    report_ = MakeReport(module_, TestCluster());
  }
  Module module_;
  Report report_;
};

TEST_F(ReportTest, Figures) {
  ASSERT_EQ(report_.stages.size(), 2);
  EXPECT_EQ(report_.stages[0].nodes, 1);
  EXPECT_EQ(report_.stages[1].nodes, 1) << "the message is no node";
  EXPECT_EQ(report_.stages[0].parameters, 32);
  EXPECT_EQ(report_.stages[1].parameters, 16);
  EXPECT_EQ(report_.stages[0].flop, 2 * 2 * 8 * 4);
  EXPECT_EQ(report_.stages[0].backward_seconds, 2);
  EXPECT_EQ(report_.stages[0].sent_bytes, 32);
  EXPECT_EQ(report_.stages[1].sent_bytes, 0);
  EXPECT_EQ(report_.stages[1].peak_bytes, 3000);
  EXPECT_EQ(report_.peak_bytes, 3000);
  EXPECT_EQ(report_.batch, 4);
  // 3 s of work and half a second of message against a bound of 3 s.
  EXPECT_NEAR(report_.bound_ratio, 3.5 / 3, 1e-9);
}

TEST_F(ReportTest, JsonHoldsTheContract) {
  const json out = json::parse(ReportJson(report_));
  EXPECT_EQ(out["stages"].size(), 2);
  EXPECT_EQ(out["stages"][1]["rank"], 1);
  EXPECT_NEAR(out["bubble_ratio"], 1.0 / 3, 1e-12);
  EXPECT_EQ(out["step_time_s"], 9.5);
  EXPECT_EQ(out["peak_bytes"], 3000);
  EXPECT_EQ(out["stages"][1]["peak_bytes"], 3000);
  EXPECT_EQ(out["stages"][1]["live_bytes"], 2900);
  EXPECT_TRUE(out.contains("bound_ratio"));
}

TEST_F(ReportTest, TextSaysWhatIsModelled) {
  const std::string text = ReportText(report_);
  EXPECT_THAT(text, testing::HasSubstr("2 ranks (--stages)"));
  EXPECT_THAT(text, testing::HasSubstr("bubble ratio              33.3 % (modelled)"));
  EXPECT_THAT(text, testing::HasSubstr("step time                 9500.000 ms (modelled; until the last rank is done, "
                                       "update included)"));
}

TEST_F(ReportTest, DevicesThatDifferAreNamed) {
  EXPECT_THAT(ReportText(report_), testing::Not(testing::HasSubstr("device\n")));
  Cluster cluster = TestCluster();
  cluster.devices[0].memory_bytes = 5000;
  cluster.devices[1].name = "gpu";
  cluster.devices[1].memory_bytes = 4000;
  const Report report = MakeReport(module_, cluster);
  EXPECT_EQ(report.device, "1 x cpu, 1 x gpu");
  EXPECT_EQ(report.memory_limit, 4000);
  EXPECT_THAT(ReportText(report), testing::ContainsRegex("times     device\n *0 .*  cpu\n *1 .*  gpu\n"));
  const json out = json::parse(ReportJson(report));
  EXPECT_EQ(out["stages"][0]["device"], "cpu");
  EXPECT_EQ(out["stages"][1]["memory_limit"], 4000);
}

// A message takes the link between its ranks.
TEST_F(ReportTest, MessagesTakeTheirLink) {
  Cluster cluster = TestCluster();
  cluster.rank_links[{0, 1}] = {0.25, 1e30};
  EXPECT_NEAR(MakeReport(module_, cluster).bound_ratio, 3.25 / 3, 1e-9);
  cluster.rank_links.clear();
  cluster.host_of = {0, 1};
  cluster.network = {2, 1e30};
  const Report report = MakeReport(module_, cluster);
  EXPECT_NEAR(report.bound_ratio, 5.0 / 3, 1e-9);
  EXPECT_NEAR(report.stages[1].message_seconds, 2, 1e-9);
}

TEST_F(ReportTest, TextSaysWhatIsFitted) {
  // Another product was measured, to take half a second for 2 flops.
  Cluster cluster = TestCluster();
  auto measured = std::make_shared<MeasuredCosts>();
  measured->fitted = FittedCosts(
      std::vector<MeasuredNode>{{"MatMul(float32[1,1],float32[1,1])->float32[1,1]", {2, 12}, 0.5}});
  for (DeviceProfile& device : cluster.devices) device.measured = measured;
  const Report report = MakeReport(module_, cluster);
  EXPECT_GT(report.origins.fitted, 0);
  EXPECT_EQ(report.origins.modelled + report.origins.measured, 0);
  const json out = json::parse(ReportJson(report));
  EXPECT_EQ(out["times"], "fitted");
  EXPECT_EQ(out["stages"][1]["times"], "fitted");
  EXPECT_EQ(out["simulated"], "from fitted costs");
  EXPECT_THAT(ReportText(report), testing::HasSubstr("step time                 9500.000 ms (from fitted costs; "));
}

TEST(Origins, HaveNames) {
  EXPECT_EQ(Name(Origins()), "modelled");
  EXPECT_EQ(NameOfSimulated(Origins()), "modelled");
  EXPECT_EQ(NameOfSimulated({.modelled = 3}), "modelled");
  EXPECT_EQ(Name(Origins{.measured = 2}), "measured");
  EXPECT_EQ(NameOfSimulated({.measured = 2}), "from measured costs");
  EXPECT_EQ(Name(Origins{.fitted = 1, .measured = 3}), "75 % measured, 25 % fitted");
  EXPECT_EQ(NameOfSimulated({.fitted = 1, .measured = 3}), "from costs 75 % measured, 25 % fitted");
  EXPECT_EQ(Name(Origins{.modelled = 1, .fitted = 1, .measured = 2}), "50 % measured, 25 % fitted, 25 % modelled");
  EXPECT_EQ(Name(Origins{.modelled = 1e-9, .measured = 1}), "99.9 % measured, 0.1 % modelled") << "not rounded away";
}

TEST_F(ReportTest, PlansThatItWasChosenFrom) {
  EXPECT_THAT(ReportText(report_), testing::Not(testing::HasSubstr("samples/s")));
  report_.candidates = {{"1f1b", {2, 1, 2}, 4, 2.0, 1.5, 0.25, 1000}, {"zb-v", {4, 2, 8}, 16, 10.0, 8.0, 0.1, 500}};
  report_.candidates.push_back({.schedule = "1f1b", .shape = {1, 1, 2}, .refusal = "too large; less\nis needed"});
  report_.candidates_passed_over = 7;
  const std::string text = ReportText(report_);
  EXPECT_THAT(text, testing::HasSubstr("   2     2  1f1b           1  2000.000           2  25.0 %         1 kB\n"));
  EXPECT_THAT(text, testing::HasSubstr("   4     8  zb-v           2 10000.000         1.6  10.0 %        500 B\n"));
  EXPECT_THAT(text, testing::HasSubstr("   1     2  1f1b           1  too large\n"));
  EXPECT_THAT(text, testing::HasSubstr(
                        "the second, --stages=4 --microbatches=8 --schedule=zb-v --virtual-stages=2, takes "
                        "25.0 % longer a sample"));
  EXPECT_THAT(text, testing::HasSubstr("(7 more pairs"));
  const json rows = json::parse(ReportJson(report_))["candidates"];
  EXPECT_EQ(rows[1]["ranks"], 4);
  EXPECT_EQ(rows[1]["batch"], 16);
  EXPECT_EQ(rows[2]["refusal"], "too large; less\nis needed");
  // Equal but for rounding.
  report_.candidates[1].step_seconds = 8 - 1e-12;
  EXPECT_THAT(ReportText(report_), testing::HasSubstr(" takes 0.0 % longer a sample"));
  report_.candidates.erase(report_.candidates.begin() + 1);
  EXPECT_THAT(ReportText(report_), testing::HasSubstr("(the first was taken)\n"));
}

TEST_F(ReportTest, OneIsOne) {
  EXPECT_THAT(ReportText(report_), testing::HasSubstr("2 ranks x 1 stage, 1f1b, 2 microbatches"));
  report_.shape = {1, 2, 1};
  EXPECT_THAT(ReportText(report_), testing::HasSubstr("1 rank x 2 stages, 1f1b, 1 microbatch, batch"));
}

TEST_F(ReportTest, TraceSlicesOfAThreadNest) {
  const json trace = json::parse(ModelledTrace(module_));
  std::map<std::pair<int, int>, double> busy_until;
  int slices = 0;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    ++slices;
    double& until = busy_until[{event["pid"], event["tid"]}];
    EXPECT_GE(event["ts"].get<double>(), until);
    until = event["ts"].get<double>() + event["dur"].get<double>();
  }
  EXPECT_EQ(slices, 12);
  EXPECT_EQ((busy_until[{1, 0}]), 9.25e6);
}

json DataOf(const std::string& html) {
  const std::string begin = "<script type=\"application/json\" id=\"data\">";
  const size_t from = html.find(begin) + begin.size();
  return json::parse(html.substr(from, html.find("</script>", from) - from));
}

TEST_F(ReportTest, HtmlHoldsEveryActionAndMessage) {
  const json data = DataOf(ReportHtml(module_, report_));
  EXPECT_EQ(data["report"], json::parse(ReportJson(report_)));
  const json& step = data["step"];
  EXPECT_EQ(step["times"], "modelled");
  EXPECT_EQ(step["step_time_s"], 9.5);
  EXPECT_EQ(step["actions"][0]["kinds"], "FFBBNU") << "norm and update follow";
  EXPECT_EQ(step["actions"][0]["microbatches"], json({0, 1, 0, 1, -1, -1}));
  EXPECT_EQ(step["actions"][0]["starts"],
            json({0, 1000000000, 4000000000, 7000000000, 9000000000, 9250000000}));
  EXPECT_EQ(step["actions"][0]["durations"],
            json({1000000000, 1000000000, 2000000000, 2000000000, 250000000, 250000000}));
  EXPECT_EQ(step["actions"][1]["stages"], json({1, 1, 1, 1, -1}));
  EXPECT_EQ(step["links"], json::parse(R"([{"from": 0, "to": 1, "bytes": 32}])"));
  EXPECT_EQ(step["messages"], json({{0, 0, 1000000000, 1500000000}}));
}

TEST_F(ReportTest, HtmlIsSelfContainedAndNamesAreText) {
  report_.notes = {"output '</script><script>bad()</script>'"};
  const std::string html = ReportHtml(module_, report_);
  EXPECT_THAT(html, testing::HasSubstr("<title>pipec: a&lt;b</title>"));
  EXPECT_THAT(html, testing::Not(testing::HasSubstr("bad()</script>")));
  EXPECT_EQ(DataOf(html)["report"]["notes"][0], report_.notes[0]);
  EXPECT_THAT(html, testing::Not(testing::HasSubstr("@DATA@")));
  EXPECT_THAT(html, testing::Not(testing::HasSubstr("https:")));
}

TEST_F(ReportTest, FileNamesMayBeAnyBytes) {
  report_.model = "a\xff";
  EXPECT_EQ(json::parse(ReportJson(report_))["model"], "a\xEF\xBF\xBD");
  EXPECT_EQ(DataOf(ReportHtml(module_, report_))["report"]["model"], "a\xEF\xBF\xBD");
}

TEST_F(ReportTest, OptimizerIsSaid) { EXPECT_EQ(json::parse(ReportJson(report_))["optimizer"], "adagrad"); }

TEST_F(ReportTest, ComparedSchedulesStandBesideThePlan) {
  StepPicture other = ModelledStep(module_, {.measured = 1});
  other.schedule = "gpipe";
  const json data =
      DataOf(ReportHtml(module_, report_, {{"gpipe", other, ""}, {"zb-v", std::nullopt, "does not fit"}}));
  ASSERT_EQ(data["compared"].size(), 2);
  EXPECT_EQ(data["compared"][0]["schedule"], "gpipe");
  EXPECT_EQ(data["compared"][0]["times"], "from measured costs");
  EXPECT_EQ(data["step"]["times"], "modelled");
  EXPECT_EQ(data["compared"][0]["actions"][0]["kinds"], "FFBBNU");
  EXPECT_EQ(data["compared"][1], json::parse(R"({"schedule": "zb-v", "refusal": "does not fit"})"));
}

}  // namespace
}  // namespace pipec
