// Every dimension of the model's inputs gets a number: from the model, from --dim, or, on the batch axis,
// from the size of the microbatch.
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "compiler/onnx/import.h"
#include "onnx/onnx_pb.h"

namespace pipec {

struct BoundInput {
  std::string name;
  TensorType type;
  bool batched = false;  // axis 0 counts the samples of the microbatch
  bool is_past = false;  // what a decoder remembers, of length 0: nothing to feed
};

struct BoundInputs {
  int64_t microbatch_size = 1;
  int64_t written = 0;             // the batch that the inputs give as a number; 0 if it is symbolic
  std::vector<std::string> alike;  // batched for no other reason than that they have that number too
  std::vector<BoundInput> inputs;  // in the model's order, without those in `initializers`
};

// A symbolic axis 0 is the batch, unless its name also stands on another axis; inputs with a number there
// have none then, whatever the number. Of a model without such an axis the batch is axis 0 of the first
// input, and of every other input that has the same number there. `samples` is what the batch is bound to; 0:
// what options say, else the model's own number, else 1. Inputs in `shared` have no batch.
//
// What exporters of decoders add for generation, inputs past... (past_key_values.0.key), has length 0 where
// nothing else is said: a dimension past... that stands on these alone is 0. A dimension "a + b" that nothing
// binds is the sum, as they call the length of what is attended to. Errors:
// InvalidArgument naming input, axis, dimension, and the flag.
absl::StatusOr<BoundInputs> BindDimensions(const onnx::GraphProto& graph,
                                           const absl::flat_hash_set<std::string>& initializers,
                                           const ImportOptions& options, int64_t samples = 0,
                                           const absl::flat_hash_set<std::string>& shared = {});

}  // namespace pipec
