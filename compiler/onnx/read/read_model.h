// A model file as onnx's own message: parsed, of a version that the onnx library knows, names clean, nesting
// and calls of functions within limits. Contents of external files are not touched.
#pragma once

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "onnx/onnx_pb.h"

namespace pipec {

// `path` ends in .onnx (binary) or .onnxtxt (ONNX text syntax, comments start with #). NotFound if there is
// no such file, InvalidArgument if it is not ONNX, is truncated, is newer than the library, or CheckNames or
// CountExpandedNodes refuse it.
absl::StatusOr<onnx::ModelProto> ReadModel(const std::string& path);

// Opset version per domain, with "" for ai.onnx.
using Opsets = absl::flat_hash_map<std::string, int>;

// InvalidArgument for a version newer than the library knows.
absl::StatusOr<Opsets> ReadOpsets(
    const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports);

// "" for ai.onnx, the domain itself otherwise.
std::string CanonicalDomain(const std::string& domain);

// What identifies a function: "domain::name", and ":overload" if it has one.
std::string FunctionKey(const std::string& domain, const std::string& name, const std::string& overload);

}  // namespace pipec
