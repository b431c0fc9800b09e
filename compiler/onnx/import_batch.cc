#include "compiler/onnx/import_batch.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

using Imported = absl::StatusOr<std::unique_ptr<Module>>;

// The microbatch's module, from a model that is written for what `exported` recorded.
Imported ImportComparing(const ImportOnce& import, int64_t samples, const BatchRecord& exported) {
  BakedBatch batch(samples, &exported);
  ASSIGN_OR_RETURN(std::unique_ptr<Module> module, import(batch));
  if (std::string note = batch.Note(); !note.empty()) module->notes.push_back(std::move(note));
  return module;
}

// Whether the model as it is written admits `samples`; then what it is there.
bool Admits(const ImportOnce& import, int64_t samples, BatchRecord& record) {
  BakedBatch batch(samples);
  batch.StartRecording();
  if (!import(batch).ok()) return false;
  record = std::move(batch.record());
  return true;
}

}  // namespace

Imported ImportMicrobatch(const ImportOptions& options, const ImportOnce& import) {
  BakedBatch first;
  Imported module = import(first);
  const int64_t samples = first.samples(), whole = samples * options.microbatches;
  BatchRecord exported;
  if (first.written() > 0 && first.written() != samples) {
    // A model that does not fit the batch its own inputs have is wrong anyhow; the first error says how.
    if (!Admits(import, first.written(), exported)) return module;
    return ImportComparing(import, samples, exported);
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
