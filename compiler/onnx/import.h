// ONNX in: read, check, inline functions, normalise to the newest opset, infer shapes with every dimension
// bound.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/module.h"

namespace pipec {

struct ImportOptions {
  // --dim NAME=N. A dimension without a name is called INPUT:AXIS.
  std::map<std::string, int64_t> dims;
  // Samples of a microbatch: bound to axis 0 of the inputs, also where that is a number, if the model can be
  // made for it (baked_batch.h). 0: the model's own, or 1 if it is symbolic.
  int64_t microbatch_size = 0;
  // Into how many microbatches the whole batch is cut, over all replicas: cut or whole, the results must be
  // the same.
  int microbatches = 1;
  // --input NAME=range|ones|zeros|FILE.npy: the input becomes a constant. range counts along the last axis.
  std::map<std::string, std::string> bound_inputs;
  // Weights in external files may be absent (planning only).
  bool allow_missing_weights = false;
  // An output that cannot be supported is left out with a note, as long as another is left: training needs
  // one.
  bool drop_refused_outputs = false;
  // The module will infer: conditions and sizes that only the run knows are admitted (counted_axes.h).
  bool infers = false;
  // External data may be links (--allow-links).
  bool allow_links = false;
  // Nodes of loop and function bodies, once per iteration and call: fewer than what a file may have, since a
  // loop of a few bytes makes them. Those that fold away cost time all the same.
  int64_t max_copies = 100'000;
  // Evaluates one node whose operands are known (passes/evaluate.h has one): shape arithmetic folds while the
  // shapes that depend on it are inferred. Without it only Shape and Size fold.
  std::function<absl::StatusOr<std::vector<std::string>>(const Node&, absl::Span<const std::string* const>)>
      evaluate;
};

// A module at level model. Float initializers become parameters (scalars: constants, unless PyTorch's exporter
// calls them parameters), other initializers and Constant nodes become constants; weights in external files
// are referenced, never read. `path` ends in .onnx (binary) or .onnxtxt (ONNX text syntax). Errors
// (InvalidArgument, NotFound, Unimplemented) name the file, and the node, op, domain, opset, dimension or
// tensor at fault and what would help.
absl::StatusOr<std::unique_ptr<Module>> ImportModel(const std::string& path, const ImportOptions& options);

}  // namespace pipec
