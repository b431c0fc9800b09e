// Models with the batch of their export in constants: made for another where that is provable, refused by
// name where it is not.
#include <gmock/gmock.h>

#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "passes/evaluate.h"
#include "tests/unit/onnx/model_file.h"

namespace pipec {
namespace {

using testing::AllOf;
using testing::HasSubstr;

ImportOptions Cut(int64_t microbatch, int microbatches) {
  ImportOptions options;
  options.microbatch_size = microbatch;
  options.microbatches = microbatches;
  options.evaluate = Evaluate;
  return options;
}

// Types of the outputs, or the refusal.
std::string Result(const std::string& graph, const ImportOptions& options) {
  auto module = TryImport(Text(graph), options);
  if (!module.ok()) return std::string(module.status().message());
  EXPECT_EQ(VerifyModel(**module), absl::OkStatus());
  std::string types;
  for (const Value* output : (*module)->graph.outputs) {
    absl::StrAppend(&types, ToString(output->type), " axis ", output->batch_axis, " ");
  }
  return types;
}

TEST(BakedBatch, ReshapeTargetsBecomeTheMicrobatch) {
  for (const char* n : {"N", "8"}) {
    const std::string x = absl::StrCat("g (float[", n, ",16,4] x) => (y) ");
    for (const char* target : {"8,64", "8,-1", "8,8,8", "8,4,16", "-1,64", "0,64", "8,1,64"}) {
      const std::string rank(std::count(target, target + strlen(target), ',') == 1 ? "2" : "3");
      EXPECT_THAT(
          Result(absl::StrCat(x, "<int64[", rank, "] t = {", target, "}> { y = Reshape(x, t) }"), Cut(2, 4)),
          AllOf(HasSubstr("float32[2,"), HasSubstr("axis 0")))
          << n << " " << target;
    }
  }
}

TEST(BakedBatch, OneSampleIsABatchToo) {
  EXPECT_EQ(Result("g (float[N,16,4] x) => (y) <int64[2] t = {1,64}> { y = Reshape(x, t) }", Cut(2, 4)),
            "float32[2,64] axis 0 ");
  EXPECT_THAT(Result("g (float[N,16,4] x) => (y) <int64[3] t = {1,1,64}> { y = Reshape(x, t) }", Cut(2, 4)),
              AllOf(HasSubstr("Reshape"), HasSubstr("axes 0 and 1")));
  EXPECT_THAT(Result("g (float[1,16,4] x) => (y) <int64[2] t = {16,4}> { y = Reshape(x, t) }", Cut(2, 4)),
              AllOf(HasSubstr("Reshape"), HasSubstr("axis 0")));
}

TEST(BakedBatch, FoldedBatchesAreRefusedByNodeAndAxis) {
  for (const char* n : {"N", "8"}) {
    for (const char* target : {"128,4", "4,128", "16,32", "512,1"}) {
      EXPECT_THAT(
          Result(absl::StrCat("g (float[", n, ",16,4] x) => (y) <int64[2] t = {", target,
                              "}> { [fold] y = Reshape(x, t) }"),
                 Cut(2, 4)),
          AllOf(HasSubstr("fold"), HasSubstr("Reshape"), HasSubstr("axis 0"), HasSubstr("batch of 8")))
          << n << " " << target;
    }
    // Known merges go along.
    EXPECT_EQ(
        Result(absl::StrCat("g (float[", n, ",16,4] x) => (y) <int64[2] t = {-1,4}> { y = Reshape(x, t) }"),
               Cut(2, 4)),
        "float32[32,4] axis 0 ");
  }
}

TEST(BakedBatch, RefusalsSayWhatCanBeDone) {
  const std::string remedy =
      "; keep 8 sample(s) a microbatch (--microbatches=M --batch=8 x M; M=1 keeps the batch whole), or "
      "export with "
      "a symbolic batch (dynamic_shapes, dynamic_axes)";
  for (const char* body : {"<int64[2] t = {128,4}> { y = Reshape(x, t) }",                          // folds
                           "<int64[2] t = {8,-1}> { z = Reshape(x, t) y = Slice(z, a, b, a) }"}) {  // picks
    std::string graph = absl::StrCat("g (float[8,16,4] x) => (y) ", body);
    if (absl::StrContains(graph, "Slice")) {
      graph.replace(graph.find("<int64[2]"), 1, "<int64[1] a = {0}, int64[1] b = {4}, ");
    }
    const std::string said = Result(graph, Cut(2, 4));
    EXPECT_THAT(said, testing::EndsWith(remedy));
    EXPECT_EQ(said.find("; keep"), said.rfind("; keep"));
  }
  EXPECT_EQ(Result("g (float[8,16,4] x) => (y) <int64[2] t = {128,4}> { y = Reshape(x, t) }", Cut(8, 4)),
            "float32[128,4] axis 0 ");
}

TEST(BakedBatch, WhatIsTheSameForEverySampleIsCut) {
  const std::string nodes[] = {
      "<int64[2] t = {8,3}, float[1,3] r = {1,2,3}> { e = Expand(r, t) y = Add(x, e) }",
      "<int64[2] t = {8,3}> { e = ConstantOfShape(t) y = Add(e, x) }",
      "<int64[2] t = {8,1}, float[1,3] r = {1,2,3}> { e = Tile(r, t) f = Tanh(e) y = Mul(x, f) }",
      "<int64[8] i = {1,1,1,1,1,1,1,1}, float[2,3] r = {1,2,3,4,5,6}> { e = Gather(r, i) y = Add(x, e) }",
      "<int64[2] t = {3,8}, float[3,1] r = {1,2,3}> { e = Expand(r, t) f = Transpose(e) y = Add(x, f) }",
  };
  for (const std::string& body : nodes) {
    for (const char* n : {"N", "8"}) {
      for (int64_t samples : {1, 2, 4, 16}) {
        EXPECT_EQ(Result(absl::StrCat("g (float[", n, ",3] x) => (y) ", body), Cut(samples, 8)),
                  absl::StrCat("float32[", samples, ",3] axis 0 "))
            << n << body;
      }
    }
  }
}

TEST(BakedBatch, InitializersAreCutIfTheirRowsAreEqual) {
  auto graph = [](const std::string& row, const std::string& last) {
    return absl::StrCat("g (float[4,2] x) => (y) <float[4,2] c = {", row, ",", row, ",", row, ",", last,
                        "}> { [sum] y = Add(x, c) }");
  };
  auto module = Import(Text(graph("1,2", "1,2")), Cut(2, 2));
  const Value* cut = module->graph.first_node()->input(1);
  EXPECT_EQ(cut->kind(), ValueKind::kConstant);
  ASSERT_EQ(cut->type.shape, Shape({2, 2}));
  const float* values = reinterpret_cast<const float*>(cut->data.bytes->data());
  EXPECT_EQ(std::vector<float>(values, values + 4), (std::vector<float>{1, 2, 1, 2}));
  EXPECT_THAT(module->notes.back(),
              AllOf(HasSubstr("batch of 4"), HasSubstr("c (axis 0, no longer learns)")));
  EXPECT_THAT(Result(graph("1,2", "1,3"), Cut(2, 2)),
              AllOf(HasSubstr("sum"), HasSubstr("'c'"), HasSubstr("axis 0"), HasSubstr("cannot be shown")));
}

TEST(BakedBatch, OneEntryForASingleSampleGoesOnLearning) {
  auto module = Import(
      Text("g (float[1,4,2] x) => (y) <float[1,1,2] c = {1,2}> { y = Concat<axis = 1>(x, c) }"), Cut(3, 2));
  const Node* expand = module->graph.outputs[0]->producer()->input(1)->producer();
  ASSERT_TRUE(expand && expand->Is("Expand"));
  EXPECT_EQ(expand->input(0)->kind(), ValueKind::kParameter);
  EXPECT_EQ(module->graph.outputs[0]->type.shape, Shape({3, 5, 2}));
}

TEST(BakedBatch, OtherOpsThatAreToldASizeOrHoldStates) {
  EXPECT_EQ(
      Result(
          R"(g (float[N,3,4,4] x) => (y) <int64[4] s = {8,3,8,8}> { y = Resize <mode = "nearest"> (x, , , s) })",
          Cut(2, 4)),
      "float32[2,3,8,8] axis 0 ");
  EXPECT_EQ(
      Result(
          R"(g (float[8,4,3] x) => (y) <float[1,8,3] c = {0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0}> {
                     t = Transpose <perm = [1, 0, 2]> (x)
                     y = Concat <axis = 0> (t, c)
                   })",
          Cut(2, 4)),
      "float32[5,2,3] axis 1 ");
  EXPECT_EQ(Result(R"(g (float[8,1,3] x) => (y) { y = Squeeze(x) })", Cut(1, 8)), "float32[1,3] axis 0 ");
  std::string zeros = "0";
  for (int i = 1; i < 16; ++i) zeros += ",0";
  EXPECT_EQ(
      Result(absl::StrCat(
                 "g (float[8,5,3] x) => (h) <float[1,2,3] w = {1,2,3,4,5,6}, float[1,2,2] r = {1,2,3,4}, "
                 "float[1,8,2] h0 = {",
                 zeros, "}> {\n",
                 "t = Transpose <perm = [1, 0, 2]> (x)\n y, h = RNN <hidden_size = 2> (t, w, r, , , h0) }"),
             Cut(2, 4)),
      "float32[1,2,2] axis 1 ");
}

// The number that the last node's operand 1 is, or the refusal.
std::string Divisor(const std::string& graph, const ImportOptions& options) {
  auto module = TryImport(Text(graph), options);
  if (!module.ok()) return std::string(module.status().message());
  const Value* number = (*module)->graph.outputs[0]->producer()->input(1);
  float value;
  std::memcpy(&value, number->data.bytes->data(), sizeof(value));
  std::string result = absl::StrCat(value);
  for (const std::string& note : (*module)->notes) {
    if (absl::StrContains(note, "is written for a batch")) absl::StrAppend(&result, " ", note);
  }
  return result;
}

TEST(BakedBatch, ASumsDivisorThatCountsTheSamplesIsScaled) {
  auto graph = [](int written, absl::string_view c, absl::string_view node) {
    return absl::StrCat("g (float[", written, ",5] x) => (y) <float c = {", c,
                        "}> { s = ReduceSum <keepdims = 0> (x) [by] y = ", node, " }");
  };
  const std::string div = "Div(s, c)";
  EXPECT_THAT(Divisor(graph(4, "4", div), Cut(2, 4)), AllOf(HasSubstr("2 the model"), HasSubstr("by (Div")));
  EXPECT_THAT(Divisor(graph(4, "20", div), Cut(8, 1)), HasSubstr("40 the model is written for a batch of 4"));
  EXPECT_THAT(Divisor(graph(2, "10", div), Cut(4, 2)), HasSubstr("20 the model"));
  EXPECT_THAT(Divisor(graph(1, "1", div), Cut(4, 2)), HasSubstr("4 the model"));
  EXPECT_THAT(Divisor("g (float[4,5] x, int64[4] t) => (y) <float c = {4}> "
                      "{ s = SoftmaxCrossEntropyLoss <reduction = \"sum\"> (x, t) y = Div(s, c) }",
                      Cut(2, 4)),
              HasSubstr("2 the model"));
  // Nothing is rebound, or the number has nothing to do with the batch.
  EXPECT_EQ(Divisor(graph(4, "4", div), Cut(4, 2)), "4");
  EXPECT_EQ(Divisor(graph(4, "3.5", div), Cut(2, 4)), "3.5");
  EXPECT_EQ(Divisor(graph(4, "7", div), Cut(2, 4)), "7");
  EXPECT_EQ(Divisor(graph(1, "7", div), Cut(2, 4)), "7");
  // What it counts cannot be told.
  const std::pair<int, std::string> doubtful[] = {{2, "2"},  {4, "8"}, {4, "3"},
                                                  {4, "19"}, {2, "1"}, {1, "5"}};
  for (const auto& [written, c] : doubtful) {
    EXPECT_THAT(Divisor(graph(written, c, div), Cut(3, 2)),
                AllOf(HasSubstr("by"), HasSubstr("Div"), HasSubstr(absl::StrCat("number ", c)),
                      HasSubstr(absl::StrCat("batch of ", written)), HasSubstr("3 sample")));
  }
  EXPECT_THAT(Divisor(graph(4, "0.05", "Mul(s, c)"), Cut(2, 4)), HasSubstr("cannot be told"));
}

TEST(BakedBatch, AMeansFactorThatMayCountTheSamplesIsRefused) {
  // The variance with N - 1 of 4 x 5 elements.
  for (const char* node : {"Mul(m, n)", "Div(m, less)"}) {
    EXPECT_THAT(Divisor(absl::StrCat("g (float[4,5] x) => (y) <float n = {20}, float less = {19}> "
                                     "{ m = ReduceMean <keepdims = 0> (x) r = Abs(m) y = ",
                                     absl::StrReplaceAll(node, {{"m,", "r,"}}), " }"),
                        Cut(2, 4)),
                HasSubstr("cannot be told"));
  }
  EXPECT_EQ(Divisor("g (float[4,5] x) => (y) <float n = {0.5}> "
                    "{ m = ReduceMean <keepdims = 0> (x) y = Mul(m, n) }",
                    Cut(2, 4)),
            "0.5");
}

TEST(BakedBatch, PickingSamplesByNumberIsRefused) {
  EXPECT_THAT(
      Result("g (float[8,3] x) => (y) <int64[1] a = {0}, int64[1] b = {4}> { [half] y = Slice(x, a, b, a) }",
             Cut(2, 4)),
      AllOf(HasSubstr("half"), HasSubstr("axis 0"), HasSubstr("batch of 8")));
  const std::string nodes[] = {
      "<int64[4,2] i = {0,0,1,1,2,0,3,1}> { [pick] y = GatherND(x, i) }",
      "<int64[4,3] i = {0,1,2,3,0,1,2,3,0,1,2,3}> { [pick] y = GatherElements <axis = 0> (x, i) }",
      "<int64[1] k = {4}> { [pick] y, i = TopK <axis = 0> (x, k) }",
      "<int64[4,1] i = {0,1,2,3}, float[4,3] u = {1,2,3,4,5,6,7,8,9,1,2,3}> "
      "{ [pick] y = ScatterND(x, i, u) }",
  };
  for (const std::string& body : nodes) {
    EXPECT_THAT(Result(absl::StrCat("g (float[4,3] x) => (y) ", body), Cut(8, 1)),
                AllOf(HasSubstr("pick"), HasSubstr("axis 0"), HasSubstr("batch of 4")))
        << body;
  }
}

TEST(BakedBatch, AnOutputThatKeepsTheSizeWrittenIsRefused) {
  // Every sample's row of the input that counts as no samples, for then the model fits.
  EXPECT_THAT(Result("g (float[4,5,8] x, int64[4] last) => (y) "
                     "<int64[4,1] rows = {0,1,2,3}, int64[1] one = {1}> "
                     "{ c = Unsqueeze(last, one) i = Concat <axis = 1> (rows, c) [at] y = GatherND(x, i) }",
                     Cut(8, 1)),
              AllOf(HasSubstr("4"), HasSubstr("8 sample")));
  EXPECT_THAT(Result("g (float[4,2] x) => (y) <float[4,2] z = {1,2,3,4,5,6,7,8}, int64[4,1] i = {0,1,2,3}> "
                     "{ [put] y = ScatterND(z, i, x) }",
                     Cut(8, 1)),
              AllOf(HasSubstr("output 'y'"), HasSubstr("batch of 4"), HasSubstr("put (ScatterND)")));
  // The means of 4 features are no samples.
  EXPECT_EQ(Result("g (float[4,4] x) => (y) <int64[1] a = {0}> { y = ReduceMean <keepdims = 0> (x, a) }",
                   Cut(8, 1)),
            "float32[4] axis -1 ");
}

TEST(BakedBatch, WhatIsWrongWithTheModelIsSaidAsItIs) {
  for (int64_t samples : {4, 2}) {
    EXPECT_THAT(Result("g (float[4,3] x) => (y) <float[2,7] w = {1,1,1,1,1,1,1,1,1,1,1,1,1,1}> "
                       "{ [wrong] y = MatMul(x, w) }",
                       Cut(samples, 2)),
                AllOf(HasSubstr("wrong"), HasSubstr("MatMul"), HasSubstr("float32[4,3]")));
  }
}

TEST(BakedBatch, ABatchOfNoneHasNoSamples) {
  for (int64_t samples : {0, 2}) {
    auto module = Import(Text("g (float[0,8] x) => (y) { y = Relu(x) }"), Cut(samples, 2));
    EXPECT_GE(module->microbatch_size, 1);
    EXPECT_EQ(module->graph.FindValue("x")->batch_axis, -1);
    EXPECT_EQ(module->graph.outputs[0]->type.shape, Shape({0, 8}));
  }
}

TEST(BakedBatch, SilentMisreadingsAreFoundByComparing) {
  // As it is written this fits 2 samples as 8 rows of 32; of 8 samples it makes 8 rows of 128.
  const std::string graph = "g (float[N,16,8] x) => (y) <int64[2] t = {8,-1}> { y = Reshape(x, t) }";
  EXPECT_EQ(Result(graph, Cut(2, 4)), "float32[2,128] axis 0 ");
  EXPECT_EQ(Result(graph, Cut(8, 1)), "float32[8,128] axis 0 ");
  EXPECT_THAT(Result(graph, Cut(2, 8)), AllOf(HasSubstr("Reshape"), HasSubstr("axis 0")));
  // Shape arithmetic is right as it is.
  EXPECT_EQ(Result(R"(g (float[N,16,8] x) => (y) <int64[1] r = {-1}> {
                     n = Shape <start = 0, end = 1> (x) t = Concat <axis = 0> (n, r) y = Reshape(x, t) })",
                   Cut(2, 8)),
            "float32[2,128] axis 0 ");
}

TEST(BakedBatch, WhereASingleSampleGoesManyShow) {
  // [L,B,E] -> [L*B,E] or [L,B*heads,E/heads]: with one sample both look as if either could be meant.
  const std::string graph = R"(g (float[N,12,32] x) => (y, z) <int64[2] r = {-1,32}, int64[3] h = {12,-1,8}> {
      t = Transpose <perm = [1, 0, 2]> (x) y = Reshape(t, r) z = Reshape(t, h) })";
  EXPECT_EQ(Result(graph, Cut(1, 4)), "float32[12,32] axis -1 float32[12,4,8] axis 1 ");
  EXPECT_EQ(Result(graph, Cut(2, 2)), "float32[24,32] axis -1 float32[12,8,8] axis 1 ");
  // Nothing to compare with.
  EXPECT_EQ(Result(graph, Cut(1, 1)), "float32[12,32] axis -1 float32[12,4,8] axis -1 ");
}

TEST(BakedBatch, InputsAreBatchedBySymbolNotBySize) {
  const std::string graph =
      "g (float[N,3] x, float[4,3] table) => (y) { t = ReduceSum <keepdims = 0> (table, a) y = Add(x, t) }";
  const std::string with =
      absl::StrCat(graph.substr(0, graph.find('{')), "<int64[1] a = {0}> ", graph.substr(graph.find('{')));
  for (int64_t samples : {2, 4}) {
    auto module = Import(Text(with), Cut(samples, 2));
    EXPECT_EQ(module->graph.FindValue("x")->batch_axis, 0);
    EXPECT_EQ(module->graph.FindValue("table")->batch_axis, -1) << samples;
  }
}

// Where no symbol says what the batch is, what fits does.
TEST(BakedBatch, AnInputThatHasTheNumberByAccidentIsFound) {
  const std::string graph =
      "g (float[4,3] x, float[4,3] b, float[3,4] w, float[4,5] v) => (y) "
      "{ s = Add(x, b) h = MatMul(s, w) y = MatMul(h, v) }";
  auto module = Import(Text(graph), Cut(2, 2));
  EXPECT_EQ(module->graph.outputs[0]->type.shape, Shape({2, 5}));
  EXPECT_EQ(module->graph.FindValue("b")->batch_axis, 0);
  EXPECT_EQ(module->graph.FindValue("v")->batch_axis, -1);
  EXPECT_EQ(module->graph.FindValue("v")->type.shape, Shape({4, 5}));
  EXPECT_THAT(module->notes.back(), HasSubstr("'v'"));
}

TEST(BakedBatch, ABatchElsewhereThanInFrontIsExplained) {
  EXPECT_THAT(Result("g (float[N,3] x, float[2,N,3] h) => (y) { y = Add(x, h) }", Cut(2, 4)),
              AllOf(HasSubstr("'N'"), HasSubstr("axis 0 of every input"), HasSubstr("axis 1")));
}

}  // namespace
}  // namespace pipec
