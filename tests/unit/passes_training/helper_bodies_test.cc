// The ONNX bodies of the helper ops: exported and read back, a model gives the numbers that the kernels gave, for
// the training graph of every gradient case and for single helper nodes.
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "compiler/onnx/bodies/bodies.h"
#include "compiler/onnx/export/module.h"
#include "compiler/onnx/import.h"
#include "compiler/ops/op_info.h"
#include "gmock/gmock.h"
#include "gradient_cases.h"
#include "helper_body_cases.h"
#include "passes/evaluate.h"
#include "passes/passes.h"
#include "runtime/device/cpu/cpu_device.h"
#include "small_model.h"
#include "tests/unit/support/scratch.h"

namespace pipec {
namespace {

using Contents = absl::flat_hash_map<std::string, std::string>;

constexpr ParameterScalars kParameter{.lr = 0.1, .weight_decay = 0.05};

StepScalars TheStep() {
  StepScalars scalars;
  scalars.seed = (uint64_t{77} << 32) + 5;
  scalars.step = 3;
  scalars.updates = 2;
  scalars.loss_scale = 8;
  scalars.valid_samples = int64_t{1} << 30;
  scalars.clip_norm = 0.5;
  scalars.clip_value = 0.3;
  scalars.parameters = &kParameter;
  return scalars;
}

// The same for the exported model.
std::map<std::string, double> TheScalars() {
  const StepScalars step;
  return {{"seed", 77 * 4294967296.0 + 5},
          {"step", 3},
          {"updates", 2},
          {"loss_scale", 8},
          {"clip_norm", 0.5},
          {"clip_value", 0.3},
          {"lr", 0.1},
          {"weight_decay", 0.05},
          {"momentum", step.momentum},
          {"beta1", step.beta1},
          {"beta2", step.beta2},
          {"eps", step.eps}};
}

// Aligned memory of a device, which it keeps until it ends.
std::byte* Place(Device& device, int64_t bytes, absl::string_view contents = "") {
  std::byte* memory = *device.Allocate(std::max<int64_t>(bytes, 1));
  std::memset(memory, 0, bytes);
  std::memcpy(memory, contents.data(), std::min<size_t>(bytes, contents.size()));
  return memory;
}

// Every value's contents after a run of all nodes in training; what has no contents is 0.
Contents Run(const Graph& graph) {
  const auto device = MakeCpuDevice(1);
  const auto stream = *device->NewStream();
  Contents contents;
  for (const Value* value : graph.Values()) {
    if (value->producer()) continue;
    contents[value->name()] =
        value->data.bytes || value->data.file ? *ReadData(*value) : std::string(value->type.bytes(), '\0');
  }
  const StepScalars scalars = TheStep();
  for (const Node* node = graph.first_node(); node; node = node->next()) {
    if (AliasOf(*node) == Alias::kView) {
      const std::string viewed = contents.at(node->input(0)->name());
      contents[node->output(0)->name()] = viewed;
      continue;
    }
    KernelSpec spec{node->op(), node->domain(), node->name(), node->attributes, {}, {}};
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    for (const Value* value : node->inputs()) {
      std::byte* memory = value ? Place(*device, value->type.bytes(), contents.at(value->name())) : nullptr;
      spec.inputs.push_back({value ? value->type : TensorType{}, value != nullptr, memory});
      inputs.push_back(memory);
    }
    for (const Value* value : node->outputs()) {
      spec.outputs.push_back({value ? value->type : TensorType{}, value != nullptr});
      outputs.push_back(value ? Place(*device, value->type.bytes()) : nullptr);
    }
    auto kernel = device->Prepare(spec);
    if (!kernel.ok()) {
      ADD_FAILURE() << node->op() << ": " << kernel.status();
      return contents;
    }
    std::byte* workspace = Place(*device, (*kernel)->workspace_bytes());
    const absl::Status status =
        (*kernel)->Launch(*stream, {inputs.data(), outputs.data(), &scalars, workspace});
    EXPECT_TRUE(status.ok()) << node->op() << ": " << status;
    for (size_t k = 0; k < node->outputs().size(); ++k) {
      const Value* value = node->output(static_cast<int>(k));
      if (value) contents[value->name()].assign(static_cast<const char*>(outputs[k]), value->type.bytes());
    }
  }
  return contents;
}

double Element(const TensorType& type, const std::string& bytes, int64_t i) {
  const char* at = bytes.data() + i * SizeOf(type.dtype);
  const auto read = [&](auto zero) {
    std::memcpy(&zero, at, sizeof(zero));
    return static_cast<double>(zero);
  };
  return type.dtype == DType::kFloat64   ? read(double{})
         : type.dtype == DType::kFloat32 ? read(float{})
         : type.dtype == DType::kInt64   ? read(int64_t{})
                                         : read(char{});
}

// Exports, reads back and compares every output that has a value in the module.
void ExpectSameWhenReadBack(const Module& module) {
  ExportOptions options{TheScalars()};
  const auto bytes = ExportModule(module, options);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const std::string path = testing::ScratchPath("bodies.onnx");
  std::ofstream(path, std::ios::binary) << *bytes;
  const auto back = ImportModel(path, {.infers = true, .evaluate = Evaluate});
  ASSERT_TRUE(back.ok()) << back.status();
  for (const Node* node = (*back)->graph.first_node(); node; node = node->next())
    EXPECT_NE(node->domain(), kPipecDomain) << node->op();
  const Contents wanted = Run(module.graph), got = Run((*back)->graph);
  int compared = 0;
  for (const Value* output : (*back)->graph.outputs) {
    const std::string& name = output->output_name.empty() ? output->name() : output->output_name;
    const Value* original = module.graph.FindValue(name);
    ASSERT_NE(original, nullptr) << name;
    ASSERT_EQ(original->type, output->type) << name;
    double largest = 0;
    for (int64_t i = 0; i < original->type.elements(); ++i)
      largest = std::max(largest, std::abs(Element(original->type, wanted.at(name), i)));
    for (int64_t i = 0; i < original->type.elements(); ++i) {
      const double want = Element(original->type, wanted.at(name), i);
      EXPECT_NEAR(Element(output->type, got.at(output->name()), i), want, 1e-6 * std::max(largest, 1e-3))
          << name << "[" << i << "]";
    }
    ++compared;
  }
  EXPECT_GT(compared, 0);
}

// Hands the training graph of every gradient case, and the graph of every case of a single node, to `use`.
void ForEveryCase(bool gradients, const std::function<void(Module&)>& use) {
  if (!gradients) {
    for (const HelperCase& c : HelperCases()) {
      SCOPED_TRACE(c.op);
      SmallModel m;
      m.graph().outputs = c.build(m);
      ASSERT_FALSE(m.graph().outputs.empty());
      use(m.module());
    }
    return;
  }
  for (const auto& family :
       {MathCases(), LinearCases(), PlaceCases(), WindowCases(), NormalizationCases(), RecurrentCases()}) {
    for (const GradientCase& c : family) {
      SCOPED_TRACE(absl::StrCat(c.op, " ", c.what));
      SmallModel m;
      Value* loss = nullptr;
      for (Value* output : c.build(m)) {
        Value* weighted =
            m.Op("Mul", {output, m.Random({output->type.shape.begin(), output->type.shape.end()})});
        Value* sum = m.Op("ReduceSum", {weighted}, {{"keepdims", int64_t{0}}});
        loss = loss ? m.Op("Add", {loss, sum}) : sum;
      }
      m.graph().outputs = {loss};
      const PassContext context;
      ASSERT_TRUE(BuildLoss(m.module(), context).ok());
      ASSERT_TRUE(BuildGradients(m.module(), context).ok());
      use(m.module());
    }
  }
}

TEST(HelperBodiesTest, TrainingGraphsOfGradientCases) { ForEveryCase(true, ExpectSameWhenReadBack); }

TEST(HelperBodiesTest, SingleNodes) { ForEveryCase(false, ExpectSameWhenReadBack); }

// Message has no kernel; what is sized by data is of infer mode, and not read back where it is padded: onnxruntime runs
// it (tests/reference/training_graphs.py).
TEST(HelperBodiesTest, EveryHelperOpHasATestedBody) {
  std::set<std::string> covered = {"Message", "NonZero", "Compress", "Unique", "NonMaxSuppression"};
  for (const bool gradients : {false, true}) {
    ForEveryCase(gradients, [&covered](Module& module) {
      for (const Node* node : module.graph.Nodes()) {
        if (node->domain() == kPipecDomain) covered.insert(node->op());
      }
    });
  }
  for (const OpInfo& info : AllOps()) {
    // Gradient stands for other nodes.
    if (info.domain != kPipecDomain || info.op == "Gradient") continue;
    const std::string op(info.op);
    EXPECT_TRUE(HasBody(op)) << op << " needs a body in compiler/onnx/bodies";
    EXPECT_TRUE(covered.contains(op)) << op << " needs a case here";
  }
}

}  // namespace
}  // namespace pipec
