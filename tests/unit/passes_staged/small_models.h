// Small training modules, built by hand and compiled level by level, every level verified.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/ir/verify.h"
#include "passes/passes.h"
#include "runtime/base/status.h"

namespace pipec {

constexpr int kWidth = 16;

// A chain of layers y = Relu(x W) on float32[2, kWidth], with what a test adds to it.
class Net {
 public:
  Net() {
    module_->model_name = "net";
    module_->microbatch_size = 2;
    x_ = graph().AddValue(ValueKind::kInput, "x", Type());
    x_->batch_axis = 0;
    last_ = x_;
  }

  static TensorType Type(DType dtype = DType::kFloat32) { return {dtype, {2, kWidth}}; }
  Graph& graph() { return module_->graph; }
  Value* last() { return last_; }
  Value* Weight(const std::string& name) {
    Value* weight = graph().AddValue(ValueKind::kParameter, name, {DType::kFloat32, {kWidth, kWidth}});
    const std::string bytes(weight->type.bytes(), '\1');
    weight->data.length = bytes.size();
    weight->data.bytes = std::make_shared<const std::string>(bytes);
    return weight;
  }
  Value* Emit(const std::string& op, std::vector<Value*> inputs, const std::string& name,
              TensorType type = Type()) {
    Value* value =
        graph().AddNode({.op = op, .name = name, .inputs = std::move(inputs), .outputs = {type}})->output(0);
    value->batch_axis = 0;
    return last_ = value;
  }
  // Values h<k> (product) and y<k> (activation).
  Value* Layer(int k, Value* weight = nullptr) {
    if (!weight) weight = Weight(absl::StrCat("w", k));
    Emit("MatMul", {last_, weight}, absl::StrCat("h", k));
    return Emit("Relu", {last_}, absl::StrCat("y", k));
  }
  std::unique_ptr<Module> Finish(Mode mode = Mode::kTrain) {
    graph().outputs = {last_};
    module_->mode = mode;
    return std::move(module_);
  }

 private:
  std::unique_ptr<Module> module_ = std::make_unique<Module>();
  Value* x_;
  Value* last_;
};

inline std::unique_ptr<Module> Chain(int layers, Mode mode = Mode::kTrain) {
  Net net;
  for (int k = 0; k < layers; ++k) net.Layer(k);
  return net.Finish(mode);
}

// Four layers, y0 added in the third and the fourth, y1 in the fourth.
inline std::unique_ptr<Module> Skips() {
  Net net;
  Value* y0 = net.Layer(0);
  Value* y1 = net.Layer(1);
  net.Layer(2);
  net.Emit("Add", {net.last(), y0}, "a2");
  net.Layer(3);
  net.Emit("Add", {net.last(), y0}, "a3");
  net.Emit("Add", {net.last(), y1}, "b3");
  return net.Finish();
}

// Four layers, the first and the last with one weight.
inline std::unique_ptr<Module> Tied() {
  Net net;
  Value* shared = net.Weight("shared");
  net.Layer(0, shared);
  net.Layer(1);
  net.Layer(2);
  net.Layer(3, shared);
  return net.Finish();
}

inline PassContext Context(int ranks, int microbatches, const std::string& schedule = "1f1b") {
  PassContext context;
  context.options.ranks = ranks;
  context.options.microbatches = microbatches;
  context.options.schedule = schedule;
  DeviceProfile device;
  device.name = "test";
  device.flops_per_second = device.bytes_per_second = 1e9;
  device.launch_seconds = 1e-7;
  device.link = {1e-6, 1e9};
  context.options.cluster = EqualDevices(device, ranks);
  return context;
}

inline void SetMemory(int64_t bytes_a_device, PassContext& context) {
  for (DeviceProfile& device : context.options.cluster.devices) device.memory_bytes = bytes_a_device;
}

// Runs the passes in order until `level` is reached; Verify after each.
inline absl::Status Compile(Module& module, const PassContext& context, Level level) {
  module.replicas = context.options.replicas;
  struct Row {
    PassFunction run;
    Level after;
    bool training_only;
  };
  const Row rows[] = {{BuildLoss, Level::kModel, true},        {BuildGradients, Level::kModel, true},
                      {BuildUpdate, Level::kTraining, true},   {SplitBackward, Level::kTraining, true},
                      {PartitionStages, Level::kModel, false}, {ReplicateUpdate, Level::kTraining, true},
                      {InsertMessages, Level::kStaged, false}, {OrderActions, Level::kScheduled, false},
                      {PlanMemory, Level::kPlanned, false}};
  for (const Row& row : rows) {
    if (row.training_only && module.mode != Mode::kTrain) continue;
    if (row.after > level) break;
    RETURN_IF_ERROR(row.run(module, context).status());
    module.level = std::max(module.level, row.after);
    RETURN_IF_ERROR(Verify(module));
  }
  return absl::OkStatus();
}

}  // namespace pipec
