#include "compiler/onnx/batch/import_batch.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

using Imported = absl::StatusOr<std::unique_ptr<Module>>;

using Names = absl::flat_hash_set<std::string>;

// What import gave of the batch that the model is written for.
struct Exported {
  BatchRecord record;
  std::vector<ValueRecord> outputs;  // of the graph
};

// The first node on the way to `output` that takes samples and whose result has no batch axis, though it is no
// sum, mean or the like over them; null if there is none.
const Node* LosesSamples(const Value* output) {
  const Node* first = nullptr;
  absl::flat_hash_set<const Value*> seen{output};
  for (std::vector<const Value*> left{output}; !left.empty();) {
    const Value* value = left.back();
    left.pop_back();
    const Node* node = value->producer();
    if (value->batch_axis >= 0 || !node) continue;
    bool loses = false;
    for (const Value* input : node->inputs()) {
      if (!input) continue;
      loses |= input->batch_axis >= 0;
      if (seen.insert(input).second) left.push_back(input);
    }
    if (loses && !ReducesAll(node->op(), node->domain())) first = node;
  }
  return first;
}

// Each output must have as many entries along the batch axis as there are samples: what has the size of the
// batch written in at any batch would be a part of the samples, or samples that are none.
absl::Status CheckOutputs(const Graph& graph, const Exported& exported, int64_t samples) {
  const int64_t written = exported.record.samples;
  if (written < 2) return absl::OkStatus();
  for (size_t i = 0; i < std::min(graph.outputs.size(), exported.outputs.size()); ++i) {
    const Value& output = *graph.outputs[i];
    const ValueRecord& before = exported.outputs[i];
    if (output.batch_axis >= 0 || output.type.shape != before.shape) continue;
    const Shape& shape = output.type.shape;
    if (std::find(shape.begin(), shape.end(), written) == shape.end()) continue;
    const Node* node = LosesSamples(&output);
    if (!node) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("output '", output.name(), "' is ", ToString(output.type), " for a batch of ", written,
                     " as the model is written, and for ", samples,
                     " sample(s) of a microbatch as well: node ", node->name(), " (", node->op(),
                     ") takes samples, and its result has no axis of them; export with a symbolic batch"));
  }
  return absl::OkStatus();
}

// The microbatch's module, from a model that is written for what `exported` recorded.
Imported ImportComparing(const ImportOnce& import, int64_t samples, const Exported& exported,
                         const Names& shared = {}) {
  BakedBatch batch(samples, &exported.record, shared);
  ASSIGN_OR_RETURN(std::unique_ptr<Module> module, import(batch));
  if (std::string note = batch.Note(); !note.empty()) module->notes.push_back(std::move(note));
  return module;
}

// What the model is with `samples` as it is written. Errors: those of `import`.
absl::StatusOr<Exported> ImportAsWritten(const ImportOnce& import, int64_t samples,
                                         const Names& shared = {}) {
  BakedBatch batch(samples, nullptr, shared);
  batch.StartRecording();
  ASSIGN_OR_RETURN(const std::unique_ptr<Module> module, import(batch));
  Exported exported{.record = std::move(batch.record())};
  for (const Value* output : module->graph.outputs) {
    exported.outputs.push_back({.shape = output->type.shape, .batch_axis = output->batch_axis});
  }
  return exported;
}

// A model whose inputs give the batch as a number, made for another. An input that has the number of samples
// by accident shows in that the model fits with its size left as it is, and not otherwise.
Imported ImportRebound(const ImportOnce& import, int64_t samples, int64_t written,
                       const std::vector<std::string>& alike) {
  const auto rebound = [&](const Exported& exported, const Names& shared) -> Imported {
    ASSIGN_OR_RETURN(std::unique_ptr<Module> module, ImportComparing(import, samples, exported, shared));
    RETURN_IF_ERROR(CheckOutputs(module->graph, exported, samples));
    return module;
  };
  // What is wrong with the model itself is said as it is.
  ASSIGN_OR_RETURN(const Exported exported, ImportAsWritten(import, written));
  Imported module = rebound(exported, {});
  for (const std::string& name : alike) {
    if (module.ok()) break;
    const absl::StatusOr<Exported> without = ImportAsWritten(import, written, {name});
    if (!without.ok()) continue;
    Imported other = rebound(*without, {name});
    if (!other.ok()) continue;
    (*other)->notes.push_back(
        absl::StrCat("input '", name, "' has ", written,
                     " entries as well, but no samples: the same ones go with every microbatch"));
    module = std::move(other);
  }
  return module;
}

}  // namespace

Imported ImportMicrobatch(const ImportOptions& options, const ImportOnce& import) {
  BakedBatch first;
  Imported module = import(first);
  const int64_t samples = first.samples(), whole = samples * options.microbatches;
  if (first.written() > 0 && first.written() != samples) {
    return ImportRebound(import, samples, first.written(), first.alike());
  }
  if (module.ok()) {
    // As it is written it fits a microbatch. Does the batch cut into microbatches give what the whole one
    // gives?
    if (!first.doubtful() || options.microbatches == 1) return module;
    const absl::StatusOr<Exported> exported = ImportAsWritten(import, whole);
    if (!exported.ok()) return module;
    return ImportComparing(import, samples, *exported);
  }
  if (!first.misfit() || first.written() > 0) return module;
  std::vector<int64_t> tried{whole};
  tried.insert(tried.end(), first.candidates().begin(), first.candidates().end());
  for (int64_t candidate : tried) {
    if (candidate == samples) continue;
    const absl::StatusOr<Exported> exported = ImportAsWritten(import, candidate);
    if (exported.ok()) return ImportComparing(import, samples, *exported);
  }
  return absl::Status(module.status().code(),
                      absl::StrCat(module.status().message(), " (a microbatch has ", samples,
                                   " sample(s); the model's constants do not admit a batch of ",
                                   absl::StrJoin(tried, ", "), " either)"));
}

}  // namespace pipec
