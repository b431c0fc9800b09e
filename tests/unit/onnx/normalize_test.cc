// Old forms against the newest: the same numbers.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>

#include "absl/container/flat_hash_map.h"
#include "compiler/onnx/export.h"
#include "onnx/checker.h"
#include "passes/evaluate.h"
#include "tests/unit/onnx/model_file.h"

namespace pipec {
namespace {

// The first output, for inputs that count 1, 2, 3, ...
std::vector<float> RunModel(const Module& module) {
  absl::flat_hash_map<const Value*, std::string> contents;
  for (const Value* value : module.graph.Values()) {
    if (value->producer()) continue;
    if (value->kind() != ValueKind::kInput) {
      contents[value] = *ReadData(*value);
      continue;
    }
    std::string bytes(value->type.bytes(), '\0');
    for (int64_t i = 0; i < value->type.elements(); ++i) {
      const float v = static_cast<float>(i + 1) / 4;
      std::memcpy(bytes.data() + i * sizeof(float), &v, sizeof(float));
    }
    contents[value] = bytes;
  }
  for (const Node* node = module.graph.first_node(); node; node = node->next()) {
    std::vector<const std::string*> inputs;
    for (const Value* input : node->inputs()) inputs.push_back(input ? &contents.at(input) : nullptr);
    auto results = Evaluate(*node, inputs);
    EXPECT_TRUE(results.ok()) << node->op() << " " << results.status();
    if (!results.ok()) return {};
    for (int k = 0; k < results->size(); ++k) {
      if (node->output(k)) contents[node->output(k)] = (*results)[k];
    }
  }
  const std::string& bytes = contents.at(module.graph.outputs[0]);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

struct Case {
  const char* name;
  const char* old_graph;
  int opset;
  const char* new_graph;
};

const Case kCases[] = {
    {"Squeeze", "g (float[1,3] x) => (y) { y = Squeeze<axes = [0]>(x) }", 11,
     "g (float[1,3] x) => (y) <int64[1] a = {0}> { y = Squeeze(x, a) }"},
    {"ReduceMean", "g (float[2,3] x) => (y) { y = ReduceMean<axes = [1]>(x) }", 13,
     "g (float[2,3] x) => (y) <int64[1] a = {1}> { y = ReduceMean(x, a) }"},
    {"Split", "g (float[2,4] x) => (y, z) { y, z = Split<axis = 1, split = [3, 1]>(x) }", 11,
     "g (float[2,4] x) => (y, z) <int64[2] s = {3, 1}> { y, z = Split<axis = 1>(x, s) }"},
    {"EqualSplit", "g (float[2,4] x) => (y, z) { y, z = Split<axis = 1>(x) }", 13,
     "g (float[2,4] x) => (y, z) { y, z = Split<axis = 1, num_outputs = 2>(x) }"},
    {"Slice", "g (float[2,4] x) => (y) { y = Slice<starts = [1], ends = [3], axes = [1]>(x) }", 9,
     "g (float[2,4] x) => (y) <int64[1] s = {1}, int64[1] e = {3}> { y = Slice(x, s, e, s) }"},
    {"Clip", "g (float[4] x) => (y) { y = Clip<min = 0.5, max = 0.75>(x) }", 6,
     "g (float[4] x) => (y) <float a = {0.5}, float b = {0.75}> { y = Clip(x, a, b) }"},
    {"Pad", "g (float[4] x) => (y) { y = Pad<pads = [1, 2], value = 9.0>(x) }", 2,
     "g (float[4] x) => (y) <int64[2] p = {1, 2}, float v = {9}> { y = Pad(x, p, v) }"},
    {"SoftmaxFlattens", "g (float[2,3,2] x) => (y) { y = Softmax(x) }", 11,
     "g (float[2,3,2] x) => (y) <int64[2] f = {2, 6}, int64[3] s = {2, 3, 2}> { a = Reshape(x, f) b = "
     "Softmax(a) y = "
     "Reshape(b, s) }"},
    {"SoftmaxLastAxis", "g (float[2,3] x) => (y) { y = LogSoftmax(x) }", 11,
     "g (float[2,3] x) => (y) { y = LogSoftmax<axis = -1>(x) }"},
    {"BroadcastAtAxis", "g (float[2,3,4] x, float[3] b) => (y) { y = Add<broadcast = 1, axis = 1>(x, b) }", 6,
     "g (float[2,3,4] x, float[3] b) => (y) <int64[2] s = {3, 1}> { c = Reshape(b, s) y = Add(x, c) }"},
};

TEST(Normalize, OldFormsComputeTheSame) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    auto old_form = Import(Text(c.old_graph, c.opset));
    auto new_form = Import(Text(c.new_graph, 21));
    EXPECT_EQ(RunModel(*old_form), RunModel(*new_form));
    EXPECT_EQ(old_form->graph.outputs[0]->type, new_form->graph.outputs[0]->type);
  }
}

// Two samples, three classes: -log softmax by hand.
TEST(Normalize, CrossEntropyMeanIsASumDividedByItsWeight) {
  auto module = Import(Text(R"(g (float[2,3] x) => (loss, p) <int64[2] labels = {2, 0}> {
        loss, p = SoftmaxCrossEntropyLoss(x, labels)
      })"));
  const std::vector<float> loss = RunModel(*module);
  ASSERT_EQ(loss.size(), 1);
  const double norm = std::log(std::exp(-0.5) + std::exp(-0.25) + 1);
  EXPECT_NEAR(loss[0], (norm + norm + 0.5) / 2, 1e-6);
  EXPECT_TRUE(module->graph.outputs[0]->producer()->Is("Div"));
  EXPECT_TRUE(module->graph.outputs[1]->producer()->Is("LogSoftmax"));
}

TEST(Export, IsValidOnnxThatComputesTheSame) {
  auto module = Import(
      Text(R"(g (float[2,3] x) => (loss, y) <float[3,3] w = {1,2,3,4,5,6,7,8,9}, int64[2] labels = {2, 0}> {
        y = MatMul(x, w)
        loss = SoftmaxCrossEntropyLoss(y, labels)
      })"));
  auto bytes = ExportModule(*module);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(*bytes));
  EXPECT_NO_THROW(onnx::checker::check_model(model));
  auto again = ImportModel(WriteFile("again.onnx", *bytes), {});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(RunModel(**again), RunModel(*module));
}

TEST(Export, StagesAreFunctions) {
  auto module = Import(Text("g (float[2] x) => (y) <float[2] w = {1, 2}> { h = Add(x, w) y = Relu(h) }"));
  module->level = Level::kStaged;
  module->graph.first_node()->stage = 0;
  module->graph.last_node()->stage = 1;
  auto bytes = ExportModule(*module);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(*bytes));
  EXPECT_NO_THROW(onnx::checker::check_model(model));
  EXPECT_EQ(model.functions_size(), 2);
  auto again = ImportModel(WriteFile("again.onnx", *bytes), {});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(RunModel(**again), (std::vector<float>{1.25, 2.5}));
}

}  // namespace
}  // namespace pipec
