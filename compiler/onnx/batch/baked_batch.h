// The batch that an exporter wrote into constants: found, and replaced by the microbatch where that is
// provable.
//
// The model is imported with the batch it admits as it is written (`exported`), and recorded; then with the
// samples of a microbatch. Along the batch axis, which the rules of compiler/ops follow, each result of the
// second import must be as large as in the first times samples / exported, and elsewhere the same. Where a
// node does not give that, a number in the model stands for the batch:
//
//   Reshape(x [8,16,16], [8,256])  ->  Reshape(x [2,16,16], [2,256])   entry 0 holds sample after sample
//   Expand, Resize, AffineGrid, MaxUnpool likewise: the entry on the batch axis
//   Add(x [8,T], positions [8,T])  ->  Add(x [2,T], positions [2,T])   if the rows of positions are equal
//   Div(sum of x over samples, 8)  ->  Div(sum of x over samples, 2)   if nothing else has the number
//
// What folds the batch into another axis, or could be read in two ways, is refused.
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "compiler/onnx/batch/batch_record.h"
#include "compiler/onnx/batch/reduced_samples.h"

namespace pipec {

// What one import knows of the batch. NodeImporter asks it for the types of every node's results.
class BakedBatch {
 public:
  // Binds the batch to `samples`; 0: to what options and model say. `exported` (kept by the caller) is the
  // record to compare with; null: nothing is compared. Inputs in `shared` have no batch, whatever their first
  // axis.
  explicit BakedBatch(int64_t samples = 0, const BatchRecord* exported = nullptr,
                      absl::flat_hash_set<std::string> shared = {});

  int64_t wanted_samples() const { return samples_; }
  const absl::flat_hash_set<std::string>& shared() const { return shared_; }
  // From here on the batch is known; `written` is the one that the model's inputs give as a number, 0 if none
  // does; `alike` are the inputs that count as batched because they have that number too.
  void Bind(int64_t samples, int64_t written, std::vector<std::string> alike);
  const std::vector<std::string>& alike() const { return alike_; }
  int64_t samples() const { return samples_; }
  int64_t written() const { return written_; }

  // InferTypes, after operands of `spec` that have the batch written in were replaced. InvalidArgument,
  // naming operand and axis, for what cannot be.
  absl::StatusOr<std::vector<TensorType>> InferTypes(Graph& graph, NodeSpec& spec, int outputs);
  // Sets the batch axes of a new node's results. `name` is what spec.name was.
  void Place(Node& node, const std::string& name);

  // Sizes that the model's constants may have been written for, the likeliest first, and whether a node did
  // not fit.
  const std::vector<int64_t>& candidates() const { return candidates_; }
  bool misfit() const { return misfit_; }
  // Whether a constant may be read in another way with another batch: then only a comparison tells.
  bool doubtful() const { return doubtful_; }

  BatchRecord& record() { return record_; }
  void StartRecording() { recording_ = true; }
  // What was replaced, one line for the user; "" if nothing was.
  std::string Note() const;

 private:
  // What a refusal ends with: what the user can do about it.
  absl::Status WithRemedy(const absl::Status& status) const;
  absl::Status Refit(Graph& graph, NodeSpec& spec, const NodeRecord& exported);
  absl::Status RefitTarget(Graph& graph, NodeSpec& spec, const NodeRecord& exported);
  absl::Status RefitOperands(Graph& graph, NodeSpec& spec, const NodeRecord& exported);
  absl::Status RefitCount(Graph& graph, NodeSpec& spec, const NodeRecord& exported);
  absl::Status Compare(const NodeSpec& spec, const NodeRecord& exported,
                       const std::vector<TensorType>& types) const;
  int64_t Scaled(int64_t size) const { return size / exported_->samples * samples_; }
  Shape Scaled(const ValueRecord& value) const;
  void Suspect(const NodeSpec& spec);
  void Suggest(int64_t samples);
  std::string Samples() const;

  int64_t samples_, written_ = 0;
  const BatchRecord* exported_;
  const NodeRecord* compared_ = nullptr;  // what `exported_` has of the node that was asked for last
  absl::flat_hash_set<std::string> shared_;
  std::vector<std::string> alike_;
  BatchRecord record_;
  bool recording_ = false, misfit_ = false, doubtful_ = false;
  std::vector<int64_t> candidates_;
  std::vector<std::string> replaced_;
  ReducedSamples reduced_;
  absl::flat_hash_map<std::string, int> met_;                       // how many nodes of a name were asked for
  absl::flat_hash_map<std::pair<const Value*, int>, Value*> rows_;  // replaced along an axis
};

}  // namespace pipec
