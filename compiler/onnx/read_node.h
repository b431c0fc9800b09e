// What a node of a file says: checked against the schema of its op, its attributes taken over.
#pragma once

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "compiler/onnx/read/read_model.h"
#include "onnx/onnx_pb.h"
#include "runtime/base/attributes.h"

namespace pipec {

// Of a function that is being expanded: what its nodes' attributes by reference refer to.
using AttributeBindings = absl::flat_hash_map<std::string, Attribute>;

// `status` with the node, its op and the opset it is written in before it; `prefix` goes before the node's
// name.
absl::Status Annotate(const onnx::NodeProto& proto, const std::string& prefix, const Opsets& opsets,
                      const absl::Status& status);

// InvalidArgument if the op's domain is not among `opsets`, if a domain that the onnx library knows has no
// such op, or, unless the node is `trusted`, if its schema refuses operands or attributes. Unimplemented for
// an op of a domain that nothing is known of.
absl::Status CheckAgainstSchema(const onnx::NodeProto& proto, const Opsets& opsets, bool trusted);

// The attributes of a node, those by reference taken from the function call it is in (null: outside of one).
// Graphs are left out if `has_bodies`, and so are types.
absl::Status ReadAttributes(const onnx::NodeProto& proto, const AttributeBindings* bindings, bool has_bodies,
                            Attributes& attributes);

}  // namespace pipec
