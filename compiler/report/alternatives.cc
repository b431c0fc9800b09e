#include "compiler/report/alternatives.h"

#include <algorithm>
#include <set>

#include "compiler/cost/node_cost.h"
#include "compiler/ops/precision.h"

namespace pipec {
namespace {

// Seconds of a ring all-reduce, and the bytes that all devices send for it.
struct AllReduce {
  double seconds = 0, bytes = 0;

  void Add(double tensor_bytes, double times, int devices, const Link& link) {
    const double sends = 2.0 * (devices - 1), of_a_send = tensor_bytes / devices;
    seconds += times * sends * MessageSeconds(of_a_send, link);
    bytes += times * sends * of_a_send * devices;
  }
};

struct Work {
  double microbatch = 0, update = 0;  // seconds, on one device
};

// On the slowest device.
Work WorkOf(const Module& module, const Cluster& cluster) {
  Work slowest;
  std::set<std::string> seen;
  for (const DeviceProfile& device : cluster.devices) {
    if (!seen.insert(device.name).second) continue;
    Work work;
    for (const Node* node : module.graph.Nodes())
      (node->kind == Kind::kU ? work.update : work.microbatch) += NodeSeconds(*node, device);
    if (work.microbatch >= slowest.microbatch) slowest = work;
  }
  return slowest;
}

// What each part of a message passes at the same time as all others.
Link RingLink(const Cluster& cluster) {
  const int devices = static_cast<int>(cluster.devices.size());
  Link slowest;
  for (int r = 0; r < devices; ++r) slowest = Slower(slowest, cluster.LinkBetween(r, (r + 1) % devices));
  return slowest;
}

int64_t GradientBytes(const Module& module) {
  int64_t bytes = 0;
  for (const TrainedParameter& trained : module.training.parameters) bytes += trained.parameter->type.bytes();
  return bytes;
}

bool IsWeight(const Value* value) {
  if (value && value->producer() && value->producer()->Is("Cast")) value = value->producer()->input(0);
  return value && value->kind() == ValueKind::kParameter;
}

// Forward nodes that multiply something with a weight: products and convolutions.
std::vector<const Node*> ProductsWithWeights(const Module& module) {
  std::vector<const Node*> products;
  for (const Node* node : module.graph.Nodes()) {
    if (node->kind == Kind::kF && PrecisionClassOf(node->op(), node->domain()) == PrecisionClass::kSmall &&
        IsWeight(node->input(1)))
      products.push_back(node);
  }
  return products;
}

}  // namespace

double SentBytes(const Module& module) {
  double bytes = 0;
  for (const Message& message : module.messages) {
    if (module.stages[message.from_stage].rank == module.stages[message.to_stage].rank) continue;
    const bool per_microbatch =
        message.kind == MessageKind::kActivation || message.kind == MessageKind::kGradient;
    for (const Value* value : message.node->inputs())
      bytes += static_cast<double>(value->type.bytes()) *
               (per_microbatch ? module.schedule.shape.microbatches : 1);
  }
  return bytes;
}

int64_t BytesOnOneDevice(const Module& module) {
  int64_t bytes = 0;
  std::set<std::string> shared;  // what several ranks hold copies of
  for (const RankMemory& memory : module.memory) {
    for (const Buffer& buffer : memory.buffers) {
      const bool stays = buffer.kind == BufferKind::kParameter || buffer.kind == BufferKind::kGradient ||
                         buffer.kind == BufferKind::kOptimizerState || buffer.kind == BufferKind::kConstant;
      if (buffer.kind == BufferKind::kMessage || buffer.kind == BufferKind::kTransient) continue;
      if (!stays || shared.insert(buffer.name).second) bytes += buffer.aligned_bytes();
    }
    bytes +=
        memory.peaks[static_cast<int>(BufferKind::kTransient)] / static_cast<int64_t>(module.memory.size());
  }
  return bytes;
}

std::vector<Alternative> Alternatives(const Module& module, const Cluster& cluster) {
  const int devices = module.schedule.shape.ranks, microbatches = module.schedule.shape.microbatches;
  if (module.mode != Mode::kTrain || devices < 2) return {};
  const Work work = WorkOf(module, cluster);
  const Link link = RingLink(cluster);
  const int64_t whole = BytesOnOneDevice(module), gradients = GradientBytes(module);

  AllReduce of_gradients;
  of_gradients.Add(static_cast<double>(gradients), 1, devices, link);
  const int share = (microbatches + devices - 1) / devices;
  const Alternative data{"data parallel", share * work.microbatch + of_gradients.seconds + work.update,
                         of_gradients.bytes, whole};

  AllReduce of_activations;
  const std::vector<const Node*> products = ProductsWithWeights(module);
  for (size_t k = 0; k < products.size(); ++k) {
    const Value* summed = k % 2 ? products[k]->output(0) : products[k]->input(0);
    of_activations.Add(static_cast<double>(summed->type.bytes()), microbatches, devices, link);
  }
  const Alternative tensor{"tensor parallel",
                           (microbatches * work.microbatch + work.update) / devices + of_activations.seconds,
                           of_activations.bytes, whole / devices};
  return {data, tensor};
}

}  // namespace pipec
