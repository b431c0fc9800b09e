// Tensors along a new or an old axis: what sequences and the scan outputs of loops become.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/onnx/in_place/in_place.h"

namespace pipec {

// Unimplemented if a tensor would be taken into more parts than a graph should have nodes.
absl::Status CheckParts(int64_t count);

// `parts` one after the other along a new axis of the result (negative: counted from its end). At least one
// part.
absl::StatusOr<Value*> Stack(InPlaceImporter& importer, const std::string& name,
                             const std::vector<Value*>& parts, int64_t axis);
// The same along an axis that they have.
absl::StatusOr<Value*> Concatenate(InPlaceImporter& importer, const std::string& name,
                                   const std::vector<Value*>& parts, int64_t axis);

// The parts of `value` of these lengths along `axis`; with `drop_axis`, which asks for lengths of 1, without
// it.
absl::StatusOr<std::vector<Value*>> SplitInto(InPlaceImporter& importer, const std::string& name,
                                              Value* value, int64_t axis, const std::vector<int64_t>& lengths,
                                              bool drop_axis);
// Every entry along `axis`, without that axis.
absl::StatusOr<std::vector<Value*>> Unstack(InPlaceImporter& importer, const std::string& name, Value* value,
                                            int64_t axis);

// A result of a subgraph from each of its iterations, stacked. Without iterations it has 0 entries along
// `axis`, and its type is what the subgraph declares: Unimplemented if that is nothing. The refusal, if that
// is what a part is.
absl::StatusOr<Meaning> StackResults(InPlaceImporter& importer, const std::string& name,
                                     const std::vector<Meaning>& parts, const onnx::ValueInfoProto& declared,
                                     int64_t axis);

}  // namespace pipec
