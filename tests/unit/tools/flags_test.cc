#include "tools/support/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/base/format_size.h"
#include "tools/support/values.h"

namespace pipec {
namespace {

using ::testing::HasSubstr;

struct Targets {
  std::string model, cluster, schedule = "1f1b";
  int stages = 2;
  bool json = false;
  int64_t memory = 0;
  std::vector<std::string> cut;
  std::map<std::string, std::string> dims;
};

struct Outcome {
  std::optional<int> exit;
  std::string out, err;
};

Outcome Parse(Targets& targets, std::vector<std::string> words) {
  FlagTable table("pipec", "MODEL [flags]", "cut a model");
  table.Positional("MODEL", &targets.model);
  table.Group("Pipeline");
  table.Int("stages", "P", &targets.stages, 1, "ranks of one pipeline");
  table.Choice("schedule", &targets.schedule, {"gpipe", "1f1b"}, "order of work");
  table.Size("memory", &targets.memory, "limit per device", "this machine's memory");
  table.Group("Output");
  table.OnOff("json", &targets.json, "machine-readable");
  table.List("cut", "NAME,...", &targets.cut, "cut here");
  table.String("cluster", "FILE.json", &targets.cluster, "what to plan for", "none");
  table.Map("dim", "NAME=N", &targets.dims, "bind a dimension");
  words.insert(words.begin(), "pipec");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Outcome outcome;
  outcome.exit = table.Parse(static_cast<int>(argv.size()), argv.data());
  outcome.out = testing::internal::GetCapturedStdout();
  outcome.err = testing::internal::GetCapturedStderr();
  return outcome;
}

TEST(FlagTable, AnEmptyTextIsNone) {
  Targets targets;
  const Outcome outcome = Parse(targets, {"m.onnx", "--cluster="});
  EXPECT_EQ(outcome.exit, kExitUsage);
  EXPECT_THAT(outcome.err, HasSubstr("--cluster: the value is empty, wanted FILE.json"));
  EXPECT_EQ(Parse(targets, {"m.onnx", "--cluster=a"}).exit, std::nullopt);
  EXPECT_EQ(targets.cluster, "a");
}

TEST(FlagTable, NumberOrAuto) {
  for (const char* word : {"--stages=8", "--stages=auto"}) {
    int stages = 2;
    bool is_auto = false;
    FlagTable table("pipec", "[flags]", "cut a model");
    table.IntOrAuto("stages", "P", &stages, &is_auto, 1, "ranks", "2");
    char name[] = "pipec";
    std::string argument = word;
    char* argv[] = {name, argument.data()};
    EXPECT_EQ(table.Parse(2, argv), std::nullopt);
    EXPECT_EQ(is_auto, argument == "--stages=auto");
    EXPECT_EQ(stages, is_auto ? 2 : 8);
    EXPECT_THAT(table.Help(), HasSubstr("P|auto"));
    EXPECT_THAT(table.BashCompletion(), HasSubstr("auto"));
  }
}

TEST(FlagTable, ReadsBothForms) {
  Targets t;
  const Outcome outcome = Parse(t, {"a.onnx", "--stages", "8", "--schedule=gpipe", "--memory=512MiB",
                                    "--json", "--cut=a,b", "--cut", "c", "--dim", "n=4", "--dim=m=x=y"});
  EXPECT_EQ(outcome.exit, std::nullopt) << outcome.err;
  EXPECT_EQ(t.model, "a.onnx");
  EXPECT_EQ(t.stages, 8);
  EXPECT_EQ(t.schedule, "gpipe");
  EXPECT_EQ(t.memory, int64_t{512} << 20);
  EXPECT_TRUE(t.json);
  EXPECT_THAT(t.cut, testing::ElementsAre("a", "b", "c"));
  EXPECT_EQ(t.dims["n"], "4");
  EXPECT_EQ(t.dims["m"], "x=y");
}

TEST(FlagTable, ReportsAllMistakesAtOnce) {
  Targets t;
  const Outcome outcome = Parse(
      t, {"--stagse", "4", "--schedule=1f2b", "--stages=0", "--memory=3XB", "--dim=x", "a.onnx", "b.onnx"});
  EXPECT_EQ(outcome.exit, kExitUsage);
  EXPECT_THAT(outcome.err, HasSubstr("--stagse; did you mean --stages?"));
  EXPECT_THAT(outcome.err, HasSubstr("valid are gpipe, 1f1b"));
  EXPECT_THAT(outcome.err, HasSubstr("--stages: 0 is below 1"));
  EXPECT_THAT(outcome.err, HasSubstr("3XB"));
  EXPECT_THAT(outcome.err, HasSubstr("NAME=N"));
  EXPECT_THAT(outcome.err, HasSubstr("unexpected argument 'b.onnx'"));
}

TEST(FlagTable, RefusesWhatIsMissingOrDouble) {
  Targets t;
  EXPECT_THAT(Parse(t, {}).err, HasSubstr("MODEL is missing"));
  EXPECT_THAT(Parse(t, {"a.onnx", "--stages=2", "--stages=3"}).err, HasSubstr("--stages is given 2 times"));
  EXPECT_THAT(Parse(t, {"a.onnx", "--stages"}).err, HasSubstr("--stages: the value is missing, wanted P"));
  EXPECT_THAT(Parse(t, {"a.onnx", "--json", "--json"}).err, HasSubstr("--json is given 2 times"));
  EXPECT_THAT(Parse(t, {"a.onnx", "--dim=n=1", "--dim=n=2"}).err, HasSubstr("'n' is given twice"));
}

TEST(FlagTable, OnOrOff) {
  for (const auto& [word, on] :
       {std::pair("--json", true), std::pair("--json=true", true), std::pair("--json=0", false)}) {
    Targets t;
    t.json = !on;
    EXPECT_EQ(Parse(t, {"a.onnx", word}).exit, std::nullopt);
    EXPECT_EQ(t.json, on) << word;
  }
  Targets t;
  EXPECT_THAT(Parse(t, {"a.onnx", "--json=maybe"}).err,
              HasSubstr("--json: 'maybe' is not known; valid are true, false"));
}

TEST(FlagTable, EveryLineOfAnErrorNamesTheProgram) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(Refuse("pipec", absl::ResourceExhaustedError("too large\nrank 0: 0F0\x1b")), kExitRefused);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "pipec: too large\npipec: rank 0: 0F0\\x1b\n");
  Targets t;
  EXPECT_THAT(Parse(t, {"a.onnx", "b\nc\x1b"}).err, HasSubstr("pipec: unexpected argument 'b\npipec: c\\x1b'\n"));
}

TEST(FlagTable, TextsNameEveryFlag) {
  Targets t;
  for (const char* text : {"--help", "--print-completion", "--print-man"}) {
    const Outcome outcome = Parse(t, {text});
    EXPECT_EQ(outcome.exit, kExitDone);
    for (const char* flag : {"stages", "schedule", "memory", "json", "cut", "dim", "gpipe"}) {
      EXPECT_THAT(outcome.out, HasSubstr(flag)) << text;
    }
  }
  EXPECT_THAT(Parse(t, {"--help"}).out, HasSubstr("default: this machine's memory"));
}

TEST(Values, Sizes) {
  EXPECT_EQ(ParseSize("8TB").value(), 8000000000000);
  EXPECT_EQ(ParseSize("1.5KiB").value(), 1536);
  EXPECT_EQ(ParseSize("1000").value(), 1000);
  EXPECT_EQ(ParseSize("64kB").value(), 64000);
  EXPECT_EQ(ParseSize("64KB").value(), 64000);
  EXPECT_EQ(ParseSize("2KiB").value(), 2048);
  for (const char* bad : {"", "GB", "3XB", "-1", "1GBs", "1gB", "99999999PB"})
    EXPECT_FALSE(ParseSize(bad).ok()) << bad;
  EXPECT_EQ(FormatSize(512), "512 B");
  EXPECT_EQ(FormatSize(1500), "1.5 kB");
  EXPECT_EQ(FormatSize(999600), "1 MB");
  EXPECT_EQ(FormatSize(1500000000), "1.5 GB");
}

}  // namespace
}  // namespace pipec
