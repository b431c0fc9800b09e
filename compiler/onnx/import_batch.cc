#include "compiler/onnx/import_batch.h"

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

// The microbatch's module, from a model that is written for what `exported` recorded.
Imported ImportComparing(const ImportOnce& import, int64_t samples, const BatchRecord& exported,
                         const Names& shared = {}) {
  BakedBatch batch(samples, &exported, shared);
  ASSIGN_OR_RETURN(std::unique_ptr<Module> module, import(batch));
  if (std::string note = batch.Note(); !note.empty()) module->notes.push_back(std::move(note));
  return module;
}

// Whether the model as it is written admits `samples`; then what it is there.
bool Admits(const ImportOnce& import, int64_t samples, BatchRecord& record, const Names& shared = {}) {
  BakedBatch batch(samples, nullptr, shared);
  batch.StartRecording();
  if (!import(batch).ok()) return false;
  record = std::move(batch.record());
  return true;
}

// A model whose inputs give the batch as a number, made for another. An input that has the number of samples
// by accident shows in that the model fits with its size left as it is, and not otherwise.
Imported ImportRebound(const ImportOnce& import, int64_t samples, int64_t written,
                       const std::vector<std::string>& alike) {
  BatchRecord exported;
  Imported module = absl::InvalidArgumentError("the model does not fit the batch that its inputs have");
  if (Admits(import, written, exported)) module = ImportComparing(import, samples, exported);
  for (const std::string& name : alike) {
    if (module.ok()) break;
    if (!Admits(import, written, exported, {name})) continue;
    Imported other = ImportComparing(import, samples, exported, {name});
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
  BatchRecord exported;
  if (first.written() > 0 && first.written() != samples) {
    return ImportRebound(import, samples, first.written(), first.alike());
  }
  if (module.ok()) {
    // As it is written it fits a microbatch. Does the batch cut into microbatches give what the whole one
    // gives?
    if (!first.doubtful() || options.microbatches == 1 || !Admits(import, whole, exported)) return module;
    return ImportComparing(import, samples, exported);
  }
  if (!first.misfit() || first.written() > 0) return module;
  std::vector<int64_t> tried{whole};
  tried.insert(tried.end(), first.candidates().begin(), first.candidates().end());
  for (int64_t candidate : tried) {
    if (candidate != samples && Admits(import, candidate, exported)) {
      return ImportComparing(import, samples, exported);
    }
  }
  return absl::Status(module.status().code(),
                      absl::StrCat(module.status().message(), " (a microbatch has ", samples,
                                   " sample(s); the model's constants do not admit a batch of ",
                                   absl::StrJoin(tried, ", "), " either)"));
}

}  // namespace pipec
