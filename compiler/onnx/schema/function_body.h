// The functions by which ONNX's schemas describe ops in terms of simpler ones.
#pragma once

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "compiler/ir/graph.h"
#include "onnx/onnx_pb.h"

namespace pipec {

// The body for an op in its newest form, with these operands; null if the schema has none. A body that
// depends on the operands' types is built in `storage`.
absl::StatusOr<const onnx::FunctionProto*> FindFunctionBody(const NodeSpec& spec, int outputs,
                                                            onnx::FunctionProto& storage);

// The newest version that the onnx library knows; 1 for a domain it does not know.
int NewestOpset(const std::string& domain);

// Adds the schema's default of every attribute that `attributes` lacks.
absl::Status AddSchemaDefaults(const std::string& op, const std::string& domain,
                               absl::flat_hash_map<std::string, Attribute>& attributes);

}  // namespace pipec
