#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "compiler/emit/emit.h"
#include "compiler/ops/low_rank.h"
#include "compiler/ops/op_info.h"

namespace pipec {
namespace {

// The operand of a loss that holds the labels, if `use` is it or a view of it is; and the number of classes,
// 0 if there are none.
bool IsLabels(const Use& use, int64_t& classes) {
  const Node& node = *use.node;
  if (use.index == 0 && AliasOf(node) == Alias::kView) {
    const absl::Span<const Use> uses = node.output(0)->uses();
    return std::any_of(uses.begin(), uses.end(), [&](const Use& seen) { return IsLabels(seen, classes); });
  }
  const bool class_loss =
      node.Is("SoftmaxCrossEntropy", kPipecDomain) || node.Is("NegativeLogLikelihood", kPipecDomain);
  const bool other_loss =
      node.Is("MeanSquaredError", kPipecDomain) || node.Is("BinaryCrossEntropyWithLogits", kPipecDomain);
  if (use.index != 1 || (!class_loss && !other_loss)) return false;
  if (class_loss) classes = node.input(0)->type.shape[node.attributes.Int("axis", 1)];
  return true;
}

ManifestPort PortOf(const Value& value) {
  ManifestPort port{value.output_name.empty() ? value.name() : value.output_name, value.type,
                    value.batch_axis, 0};
  if (IsFloat(value.type.dtype) || value.type.dtype == DType::kBool) return port;
  for (const Use& use : value.uses()) {
    int64_t bound = 0;
    if (use.node->Is("Gather") && use.index == 1) {
      const Shape& shape = use.node->input(0)->type.shape;
      const int64_t axis = use.node->attributes.Int("axis", 0);
      bound = shape[axis < 0 ? axis + static_cast<int64_t>(shape.size()) : axis];
    }
    IsLabels(use, bound);
    if (bound > 0) port.bound = port.bound == 0 ? bound : std::min(port.bound, bound);
  }
  return port;
}

// Which contents, not their value, and the name of the parameter in use that has them.
using ContentsKey = std::pair<const void*, uint64_t>;
using Contents = absl::flat_hash_map<ContentsKey, std::string>;

ContentsKey KeyOf(const Value& value) {
  const TensorData& data = value.data;
  return data.bytes ? ContentsKey(data.bytes.get(), 0) : ContentsKey(data.file.get(), data.offset);
}

Contents ContentsInUse(const ParameterPlacement& placement) {
  Contents contents;
  for (const PlacedParameter& placed : placement.parameters) {
    if (!placed.value->uses().empty()) contents.emplace(KeyOf(*placed.value), placed.value->name());
  }
  return contents;
}

}  // namespace

Manifest MakeManifest(const Module& module, const ParameterPlacement& placement,
                      absl::string_view pipec_version) {
  const ScheduleShape& shape = module.schedule.shape;
  Manifest manifest;
  manifest.pipec_version = std::string(pipec_version);
  manifest.model = module.model_name;
  manifest.mode = module.mode == Mode::kTrain ? "train" : "infer";
  manifest.schedule = module.schedule.name;
  manifest.optimizer = module.training.optimizer;
  manifest.precision = module.precision == DType::kBFloat16  ? "bf16"
                       : module.precision == DType::kFloat16 ? "fp16"
                                                             : "fp32";
  manifest.ranks = shape.ranks;
  manifest.virtual_stages = shape.virtual_stages;
  manifest.microbatches = shape.microbatches;
  manifest.microbatch_size = module.microbatch_size;
  manifest.replicas = module.replicas;
  for (const Value* value : module.graph.inputs()) {
    manifest.inputs.push_back(PortOf(*value));
    int64_t classes = 0;
    for (const Use& use : value->uses()) {
      if (IsLabels(use, classes)) manifest.labels = value->name();
    }
  }
  if (module.mode == Mode::kInfer) {
    for (const Value* value : module.graph.outputs) manifest.outputs.push_back(PortOf(*value));
    for (const CountedOutput& row : module.counted_outputs) {
      manifest.counts.push_back({row.output, row.axis, row.count});
    }
  }
  const Contents in_use = ContentsInUse(placement);
  for (const PlacedParameter& placed : placement.parameters) {
    const auto original = placed.value->uses().empty() ? in_use.find(KeyOf(*placed.value)) : in_use.end();
    manifest.parameters.push_back({placed.value->name(), placed.type, placed.file, placed.offset, "",
                                   original == in_use.end() ? "" : original->second});
  }
  for (const LowRank& row : FindLowRank(module.graph)) {
    manifest.low_rank.push_back({row.weight->name(), row.a->name(), row.b->name(), row.transposed});
  }
  absl::flat_hash_set<std::pair<int, int>> seen;
  for (const auto& list : module.simulation.ranks) {
    for (const SimulatedAction& row : list) {
      const bool sends = row.action.kind == ActionKind::kSendF || row.action.kind == ActionKind::kSendB;
      if (!sends || !seen.insert({row.action.stage, row.action.peer_stage}).second) continue;
      manifest.messages.push_back(
          {row.action.stage, row.action.peer_stage, static_cast<int64_t>(1e9 * (row.end - row.start))});
    }
  }
  return manifest;
}

}  // namespace pipec
