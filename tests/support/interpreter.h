// Runs a graph node by node on the CPU device, one buffer a value: what gradients are checked with.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/ops/op_info.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/cpu_device.h"

namespace pipec {

class Interpreter {
 public:
  // Every forward and backward node is prepared; parameters and constants have their contents.
  static absl::StatusOr<std::unique_ptr<Interpreter>> Make(const Graph& graph) {
    auto made = std::unique_ptr<Interpreter>(new Interpreter());
    ASSIGN_OR_RETURN(made->stream_, made->device_->NewStream());
    for (const Value* value : graph.Values()) {
      if (value->producer()) continue;
      RETURN_IF_ERROR(made->AddBuffer(value));
      const TensorData& data = value->data;
      if (data.bytes) std::memcpy(made->buffers_[value], data.bytes->data(), data.length);
    }
    for (const Node* node : graph.Nodes()) {
      if (node->kind != Kind::kU) RETURN_IF_ERROR(made->Prepare(*node));
    }
    return made;
  }

  // The first microbatch of a step.
  absl::Status Forward() {
    return Run([](const Node& node) { return node.kind == Kind::kF; });
  }
  absl::Status Backward() {
    return Run([](const Node& node) { return node.kind != Kind::kF; });
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

  Interpreter() : device_(MakeCpuDevice(1)) {}

  absl::Status AddBuffer(const Value* value) {
    ASSIGN_OR_RETURN(buffers_[value], device_->Allocate(std::max<int64_t>(value->type.bytes(), 1)));
    return absl::OkStatus();
  }

  absl::Status Prepare(const Node& node) {
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
        buffers_[value] = buffers_.at(node.input(AliasInput(node, k)));
      } else if (value) {
        RETURN_IF_ERROR(AddBuffer(value));
      }
      step.outputs.push_back(value ? buffers_[value] : nullptr);
    }
    ASSIGN_OR_RETURN(step.kernel, device_->Prepare(spec));
    ASSIGN_OR_RETURN(step.workspace, device_->Allocate(std::max<int64_t>(step.kernel->workspace_bytes(), 1)));
    steps_.push_back(std::move(step));
    return absl::OkStatus();
  }

  template <typename Wanted>
  absl::Status Run(const Wanted& wanted) {
    StepScalars scalars;
    scalars.valid_samples = 1 << 20;
    for (Step& step : steps_) {
      if (!wanted(*step.node)) continue;
      RETURN_IF_ERROR(
          step.kernel->Launch(*stream_, {step.inputs.data(), step.outputs.data(), &scalars, step.workspace}));
    }
    return absl::OkStatus();
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  std::map<const Value*, std::byte*> buffers_;
  std::vector<Step> steps_;
};

}  // namespace pipec
