// Every op with a gradient rule, and every op that a rule emits, has a CUDA kernel and random instructions to
// compare it by; and on the very instructions of those gradients it gives what the CPU's gives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "passes/gradients/gradient.h"
#include "passes/passes.h"
#include "runtime/device/cpu/cpu_device.h"
#include "runtime/device/cuda/cuda_device.h"
#include "runtime/device/cuda/kernel_registry.h"
#include "tests/cuda/kernel_case.h"
#include "tests/cuda/op_cases.h"
#include "tests/cuda_emulation/control.h"
#include "tests/unit/passes_training/gradient_cases.h"

namespace pipec {
namespace {

using Name = std::pair<std::string, std::string>;  // domain, op

// What is not there, and why. Whatever gets its kernel must leave the list.
const std::map<Name, std::string>& Gaps() {
  static const auto* const gaps = new std::map<Name, std::string>{};
  return *gaps;
}

// The case with its loss and gradients, or why not.
absl::Status Differentiate(const GradientCase& gradient_case, SmallModel& m) {
  Value* loss = nullptr;
  for (Value* output : gradient_case.build(m)) {
    Value* weighted = m.Op("Mul", {output, m.Random({output->type.shape.begin(), output->type.shape.end()})});
    Value* sum = m.Op("ReduceSum", {weighted}, {{"keepdims", int64_t{0}}});
    loss = loss ? m.Op("Add", {loss, sum}) : sum;
  }
  m.graph().outputs = {loss};
  const PassContext context;
  if (auto built = BuildLoss(m.module(), context); !built.ok()) return built.status();
  return BuildGradients(m.module(), context).status();
}

TEST(CudaCoverage, EveryOpOfEveryGradientHasAKernelAndACase) {
  std::set<Name> used;
  for (const GradientRuleEntry& entry : AllGradientRules()) used.emplace(entry.domain, entry.op);
  for (const GradientCase& gradient_case : AllGradientCases()) {
    SmallModel m;
    ASSERT_EQ(Differentiate(gradient_case, m), absl::OkStatus())
        << gradient_case.op << " " << gradient_case.what;
    for (const Node* node : m.graph().Nodes()) used.emplace(node->domain(), node->op());
  }
  std::set<Name> missing, gaps;
  for (const Name& name : used) {
    const bool kernel = cuda::Kernels().Find(name.second, name.first) != nullptr;
    EXPECT_TRUE(!kernel || OpCases().contains(name)) << name.second << " is compared with nothing";
    if (!kernel) missing.insert(name);
  }
  for (const auto& [name, why] : Gaps()) gaps.insert(name);
  EXPECT_EQ(missing, gaps);
}

class CudaGradient : public testing::TestWithParam<GradientCase> {};

TEST_P(CudaGradient, EqualsTheCpusNodeByNode) {
  SmallModel m;
  ASSERT_EQ(Differentiate(GetParam(), m), absl::OkStatus());
  cuda_emulation::SetSeed(7);
  std::map<const Value*, std::string> contents;
  for (const Value* value : m.graph().Values()) {
    if (value->producer()) continue;
    contents[value] = value->data.bytes ? value->data.bytes->substr(0, value->data.length)
                                        : std::string(value->type.bytes(), '\0');
  }
  const std::unique_ptr<Device> gpu = MakeCudaDevice(0);
  for (const Node* node : m.graph().Nodes()) {
    if (node->kind == Kind::kU) continue;
    KernelCase c;
    c.spec = {node->op(), node->domain(), node->name(), node->attributes, {}, {}};
    c.scalars.valid_samples = 1 << 20;
    for (const Value* value : node->inputs()) {
      const int k = static_cast<int>(c.inputs.size());
      c.spec.inputs.push_back({value ? value->type : TensorType{}, value != nullptr});
      c.inputs.push_back(value ? contents.at(value) : "");
      if (value && value->kind() == ValueKind::kConstant) c.constants.push_back(k);
    }
    for (const Value* value : node->outputs())
      c.spec.outputs.push_back({value ? value->type : TensorType{}, value != nullptr});
    const auto wanted = RunCase(*MakeCpuDevice(1), c);
    ASSERT_TRUE(wanted.ok()) << wanted.status();
    for (size_t k = 0; k < wanted->size(); ++k) {
      if (node->output(static_cast<int>(k))) contents[node->output(static_cast<int>(k))] = (*wanted)[k];
    }
    if (Gaps().contains({node->domain(), node->op()})) continue;
    const auto got = RunCase(*gpu, c);
    EXPECT_THAT(cuda_emulation::TakeReports(), testing::IsEmpty()) << node->op();
    ASSERT_TRUE(got.ok()) << node->op() << ": " << got.status();
    for (size_t k = 0; k < wanted->size(); ++k) {
      if (!c.spec.outputs[k].present) continue;
      // float64, but for what a few rules compute in float32.
      const double tolerance = c.spec.outputs[k].type.dtype == DType::kFloat32 ? 4e-6 : 1e-11;
      EXPECT_EQ(Difference(c.spec.outputs[k].type, (*wanted)[k], (*got)[k], tolerance), "")
          << node->op() << ", result " << k;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, CudaGradient, testing::ValuesIn(AllGradientCases()),
                         [](const auto& info) { return absl::StrCat(info.param.op, "_", info.param.what); });

}  // namespace
}  // namespace pipec
