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
};

struct BoundInputs {
  int64_t microbatch_size = 1;
  std::vector<BoundInput> inputs;  // in the model's order, without those in `initializers`
};

// A symbolic axis 0 is the batch, unless its name also stands on another axis; of a model without such an
// axis the batch is axis 0 of the first input. Errors: InvalidArgument naming input, axis, dimension, and the
// flag.
absl::StatusOr<BoundInputs> BindDimensions(const onnx::GraphProto& graph,
                                           const absl::flat_hash_set<std::string>& initializers,
                                           const ImportOptions& options);

}  // namespace pipec
