#include "compiler/onnx/add_outputs.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/onnx/declared_type.h"
#include "compiler/onnx/schema/emit_node.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

class Outputs {
 public:
  Outputs(const ImportOptions& options, const BakedBatch& batch, const CountedAxes& counted, Module& module)
      : options_(options), batch_(batch), counted_(counted), module_(module) {}

  absl::Status Add(const onnx::ValueInfoProto& info, const Scope& scope) {
    const Meaning* meaning = scope.Find(info.name());
    if (!meaning || std::holds_alternative<Absent>(*meaning)) {
      return absl::InvalidArgumentError("is defined by nothing");
    }
    onnx::ValueInfoProto element = info;
    if (info.type().has_optional_type()) *element.mutable_type() = info.type().optional_type().elem_type();
    const auto* sequence = std::get_if<Sequence>(meaning);
    if (element.has_type() && element.type().has_sequence_type() != (sequence != nullptr) &&
        !std::holds_alternative<EmptyOptional>(*meaning) && !std::holds_alternative<absl::Status>(*meaning)) {
      return absl::InvalidArgumentError(
          absl::StrCat("is declared as another kind of value, but is ", Describe(*meaning)));
    }
    if (std::holds_alternative<EmptyOptional>(*meaning)) return Nothing(info.name(), *meaning);
    if (!sequence) {
      ASSIGN_OR_RETURN(Value * value, TensorOf(*meaning));
      return AddTensor(element, value);
    }
    if (sequence->elements.empty()) return Nothing(info.name(), *meaning);
    if (element.has_type()) {
      const onnx::TypeProto type = element.type().sequence_type().elem_type();
      *element.mutable_type() = type;
    }
    for (size_t i = 0; i < sequence->elements.size(); ++i) {
      element.set_name(absl::StrCat(info.name(), ".", i));
      RETURN_IF_ERROR(AddTensor(element, sequence->elements[i]));
    }
    module_.notes.push_back(absl::StrCat("output '", info.name(), "' is ", Describe(*meaning),
                                         ": the outputs ", info.name(), ".0 to ", info.name(), ".",
                                         sequence->elements.size() - 1));
    return absl::OkStatus();
  }

  // Behind the model's own.
  void AddCounts() {
    module_.graph.outputs.insert(module_.graph.outputs.end(), pending_.begin(), pending_.end());
  }

 private:
  absl::Status Nothing(const std::string& name, const Meaning& meaning) {
    module_.notes.push_back(
        absl::StrCat("output '", name, "' is ", Describe(meaning), ": nothing is delivered for it"));
    return absl::OkStatus();
  }

  absl::Status AddTensor(const onnx::ValueInfoProto& declared, Value* value) {
    const Counted* counted = counted_.Find(value);
    if (counted && options_.microbatches > 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("how many entries it has along axis ", counted->axis,
                       " depends on the data of a microbatch, and those of ", options_.microbatches,
                       " microbatches cannot be put together; --microbatches=1 would do"));
    }
    // Exporters write the batch of the export into the outputs, also where the inputs have a symbol.
    const bool same_batch = batch_.written() == batch_.samples();
    const int any_size = counted ? counted->axis : same_batch ? -1 : value->batch_axis;
    RETURN_IF_ERROR(CheckDeclaredType(declared, value->type, any_size));
    if (value->name() != declared.name()) {
      NodeSpec identity{
          .op = "Identity", .name = absl::StrCat(declared.name(), "/Identity"), .inputs = {value}};
      identity.output_names = {declared.name()};
      ASSIGN_OR_RETURN(Node * node, EmitNode(module_.graph, std::move(identity)));
      value = node->output(0);
    }
    module_.graph.outputs.push_back(value);
    if (counted) AddCount(*value, *counted);
    return absl::OkStatus();
  }

  void AddCount(const Value& value, const Counted& counted) {
    auto [it, added] = counts_.try_emplace(counted.count, "");
    if (added) {
      module_.graph.Rename(counted.count, absl::StrCat(value.name(), ".count"));
      it->second = counted.count->name();
      pending_.push_back(counted.count);
    }
    module_.counted_outputs.push_back({value.name(), counted.axis, it->second});
  }

  const ImportOptions& options_;
  const BakedBatch& batch_;
  const CountedAxes& counted_;
  Module& module_;
  absl::flat_hash_map<const Value*, std::string> counts_;  // names of those that are outputs
  std::vector<Value*> pending_;
};

}  // namespace

absl::Status AddOutputs(const onnx::GraphProto& graph, const ImportOptions& options, const BakedBatch& batch,
                        const CountedAxes& counted, const Scope& scope, Module& module) {
  Outputs outputs(options, batch, counted, module);
  absl::Status first_refusal;
  for (const auto& info : graph.output()) {
    const absl::Status status = outputs.Add(info, scope);
    if (status.ok()) continue;
    const std::string why = absl::StrCat("output '", info.name(), "': ", status.message());
    if (!absl::IsUnimplemented(status)) {
      return absl::Status(status.code(), absl::StrCat("output '", info.name(), "' ", status.message()));
    }
    first_refusal.Update(absl::UnimplementedError(why));
    if (!options.drop_refused_outputs) return first_refusal;
    module.refused_outputs.push_back({.name = info.name(),
                                      .why = std::string(status.message()),
                                      .position = static_cast<int>(module.graph.outputs.size()),
                                      .is_float = MayBeFloat(info),
                                      .is_scalar = IsDeclaredScalar(info)});
    module.notes.push_back(absl::StrCat("left out: ", why));
  }
  outputs.AddCounts();
  if (!module.graph.outputs.empty()) return absl::OkStatus();
  if (!first_refusal.ok() || graph.output().empty()) return first_refusal;
  return absl::UnimplementedError(
      absl::StrCat("output '", graph.output(0).name(),
                   "' and all others have no tensors, so that there is nothing to compute"));
}

}  // namespace pipec
