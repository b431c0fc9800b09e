// Runs a graph node by node on the CPU device, one buffer a value: what the gradients of the training passes
// are checked with.
#pragma once

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/ops/op_info.h"
#include "gtest/gtest.h"
#include "runtime/device/cpu/cpu_device.h"

namespace pipec {

class Interpreter {
 public:
  // Every forward and backward node is prepared; parameters and constants have their contents.
  explicit Interpreter(const Graph& graph) : device_(MakeCpuDevice(1)) {
    auto stream = device_->NewStream();
    EXPECT_TRUE(stream.ok()) << stream.status();
    stream_ = *std::move(stream);
    for (const Value* value : graph.Values()) {
      if (!value->producer()) NewBuffer(value);
      if (value->data.bytes) std::memcpy(buffers_[value], value->data.bytes->data(), value->data.length);
    }
    for (const Node* node : graph.Nodes()) {
      if (node->kind != Kind::kU) Prepare(*node);
    }
  }

  // The first microbatch of a step.
  void Forward() {
    Run([](const Node& node) { return node.kind == Kind::kF; });
  }
  void Backward() {
    Run([](const Node& node) { return node.kind != Kind::kF; });
  }

  template <typename T>
  T* Data(const Value* value) {
    return reinterpret_cast<T*>(buffers_.at(value));
  }

 private:
  struct Step {
    const Node* node;
    std::unique_ptr<Kernel> kernel;
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    std::byte* workspace = nullptr;
  };

  std::byte* Allocate(int64_t bytes) {
    auto memory = device_->Allocate(std::max<int64_t>(bytes, 1));
    EXPECT_TRUE(memory.ok()) << memory.status();
    return *memory;
  }
  void NewBuffer(const Value* value) { buffers_[value] = Allocate(value->type.bytes()); }

  void Prepare(const Node& node) {
    KernelSpec spec{node.op(), node.domain(), node.name(), node.attributes, {}, {}};
    Step step{&node};
    for (const Value* value : node.inputs()) {
      spec.inputs.push_back({value ? value->type : TensorType{}, value != nullptr,
                             value && value->kind() == ValueKind::kConstant ? buffers_[value] : nullptr});
      step.inputs.push_back(value ? buffers_.at(value) : nullptr);
    }
    const bool same_memory = AliasOf(node) == Alias::kSameMemory;
    for (int k = 0; k < node.outputs().size(); ++k) {
      const Value* value = node.output(k);
      spec.outputs.push_back({value ? value->type : TensorType{}, value != nullptr});
      if (value && same_memory) {
        buffers_[value] = buffers_.at(node.input(FindOp(node.op(), node.domain())->alias_input + k));
      } else if (value) {
        NewBuffer(value);
      }
      step.outputs.push_back(value ? buffers_[value] : nullptr);
    }
    auto kernel = device_->Prepare(spec);
    ASSERT_TRUE(kernel.ok()) << node.name() << " " << node.op() << ": " << kernel.status();
    step.kernel = *std::move(kernel);
    step.workspace = Allocate(step.kernel->workspace_bytes());
    steps_.push_back(std::move(step));
  }

  template <typename Wanted>
  void Run(const Wanted& wanted) {
    StepScalars scalars;
    scalars.valid_samples = 1 << 20;
    for (Step& step : steps_) {
      if (!wanted(*step.node)) continue;
      const absl::Status status =
          step.kernel->Launch(*stream_, {step.inputs.data(), step.outputs.data(), &scalars, step.workspace});
      ASSERT_TRUE(status.ok()) << step.node->name() << " " << step.node->op() << ": " << status;
    }
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  std::map<const Value*, std::byte*> buffers_;
  std::vector<Step> steps_;
};

}  // namespace pipec
