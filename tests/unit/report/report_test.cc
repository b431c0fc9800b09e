// A module put together by hand: two ranks of one stage each, two microbatches, F 1 s, I and W 1 s each.
#include "compiler/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

namespace pipec {
namespace {

using nlohmann::json;

Value* Tensor(Graph& graph, ValueKind kind, const char* name, Shape shape) {
  return graph.AddValue(kind, name, {DType::kFloat32, shape});
}

void Fill(Module& module) {
  Graph& graph = module.graph;
  Value* x = Tensor(graph, ValueKind::kInput, "x", {2, 8});
  Value* w0 = Tensor(graph, ValueKind::kParameter, "w0", {8, 4});
  Value* w1 = Tensor(graph, ValueKind::kParameter, "w1", {4, 4});
  const TensorType hidden{DType::kFloat32, {2, 4}};
  Node* first = graph.AddNode({.op = "MatMul", .inputs = {x, w0}, .outputs = {hidden}, .stage = 0});
  Node* message = graph.AddNode({.op = "Message",
                                 .domain = kPipecDomain,
                                 .inputs = {first->output(0)},
                                 .outputs = {hidden},
                                 .stage = 1});
  Node* second =
      graph.AddNode({.op = "MatMul", .inputs = {message->output(0), w1}, .outputs = {hidden}, .stage = 1});
  graph.outputs = {second->output(0)};
  module.model_name = "a<b";
  module.level = Level::kPlanned;
  module.microbatch_size = 2;
  module.stages = {{0, {1, 1, 1}}, {1, {1, 1, 1}}};
  module.messages = {{message, MessageKind::kActivation, 0, 1}};
  module.partition_bound = 3;
  module.schedule.name = "1f1b";
  module.schedule.shape = {2, 1, 2};
  module.simulation.makespan = 9;
  module.simulation.step_seconds = 9.5;
  module.simulation.bubble_ratio = 1.0 / 3;
  using K = ActionKind;
  module.simulation.ranks = {
      {{{K::kF, 0, 0}, 0, 1},
       {{K::kSendF, 0, 0, 1}, 1, 1.5},
       {{K::kF, 0, 1}, 1, 2},
       {{K::kB, 0, 0}, 4, 6},
       {{K::kB, 0, 1}, 7, 9},
       {{K::kNorm}, 9, 9.25},
       {{K::kUpdate, 0}, 9.25, 9.5}},
      {{{K::kF, 1, 0}, 1, 2}, {{K::kB, 1, 0}, 2, 4}, {{K::kF, 1, 1}, 4, 5}, {{K::kB, 1, 1}, 5, 7}, {{K::kNorm}, 7, 9.25}}};
  module.memory.resize(2);
  module.memory[0].arena_bytes = 1000;
  module.memory[1].arena_bytes = 3000;
  module.memory[1].lower_bound = 2900;
  module.training.optimizer = "adagrad";
  for (int rank = 0; rank < 2; ++rank) {
    std::vector<Action>& list = module.schedule.ranks.emplace_back();
    for (const SimulatedAction& slice : module.simulation.ranks[rank]) list.push_back(slice.action);
  }
  module.notes = {"2 ranks (--stages)"};
}

Cluster TestCluster() {
  Cluster cluster;
  cluster.device.name = "cpu";
  cluster.link = {0.5, 1e30};
  return cluster;
}

class ReportTest : public testing::Test {
 protected:
  ReportTest() {
    Fill(module_);
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
  EXPECT_THAT(text, testing::HasSubstr("step time                 9500.000 ms (modelled)"));
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
  EXPECT_EQ(step["actions"][0]["durations"], json({1000000000, 1000000000, 2000000000, 2000000000, 250000000, 250000000}));
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

TEST_F(ReportTest, OptimizerIsSaid) { EXPECT_EQ(json::parse(ReportJson(report_))["optimizer"], "adagrad"); }

TEST_F(ReportTest, ComparedSchedulesStandBesideThePlan) {
  StepPicture other = ModelledStep(module_);
  other.schedule = "gpipe";
  const json data =
      DataOf(ReportHtml(module_, report_, {{"gpipe", other, ""}, {"zb-v", std::nullopt, "does not fit"}}));
  ASSERT_EQ(data["compared"].size(), 2);
  EXPECT_EQ(data["compared"][0]["schedule"], "gpipe");
  EXPECT_EQ(data["compared"][0]["actions"][0]["kinds"], "FFBBNU");
  EXPECT_EQ(data["compared"][1], json::parse(R"({"schedule": "zb-v", "refusal": "does not fit"})"));
}

}  // namespace
}  // namespace pipec
