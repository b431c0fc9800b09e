// Initializers of a graph, renamed, transposed, split and put together again without a change of what the
// graph computes.
#pragma once

#include <string>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "compiler/onnx/read/external_data.h"
#include "onnx/onnx_pb.h"

namespace pipec {

class ParameterEditor {
 public:
  ParameterEditor(onnx::GraphProto& graph, ExternalDataResolver& external);

  // Null if there is none, or if it is an input too: then others may replace it.
  const onnx::TensorProto* Find(const std::string& initializer) const;
  // Row-major, little-endian. NotFound if they are in a file that is missing.
  absl::StatusOr<std::string> Contents(const std::string& initializer);
  // Whether b, or b transposed, has the shape and the contents of a.
  absl::StatusOr<bool> AreEqual(const std::string& a, const std::string& b, bool transposed);

  // Operand k of the node is henceforth `parameter`, which is made from it unless it is there already. With
  // `transposed` the operand is the parameter's transpose (both have two axes). False, and nothing changed,
  // if the operand is no initializer, if one of that name with another shape or other contents is there, or if
  // copies of merged tensors would take many times the memory of the model.
  absl::StatusOr<bool> Use(onnx::NodeProto& node, int k, const std::string& parameter, bool transposed);

  // At Finish every use of the initializer becomes one of `by`.
  void Replace(const std::string& initializer, const std::string& by);
  // At Finish the nodes read a Constant node's result instead of the initializer, which stays only if it is
  // `kept`. What Replace was called for is left alone.
  absl::Status MakeConstant(const std::string& initializer, bool kept);
  // A new initializer.
  void Add(const std::string& name, int data_type, std::vector<int64_t> dims, std::string bytes);
  // An initializer without contents, of another's type.
  void AddAlias(const std::string& name, const std::string& of);
  // A node in front of all others; returns its operand list, attributes and so on to fill in.
  onnx::NodeProto& AddNode(const std::string& op, const std::string& result);
  bool HasValue(const std::string& name) const { return made_.contains(name); }

  // The initializer goes at Finish unless something still uses it.
  void Drop(const std::string& initializer) { replaced_.insert(initializer); }
  // Takes out the initializers that nothing uses any more, and puts the new nodes in front.
  void Finish();

 private:
  // Whether the operand is what `parameter` holds, or its transpose.
  absl::StatusOr<bool> IsCopy(const std::string& parameter, const std::string& operand, bool transposed);

  onnx::GraphProto& graph_;
  ExternalDataResolver& external_;
  absl::flat_hash_map<std::string, int> index_;
  absl::flat_hash_set<std::string> defaults_;              // initializers that are inputs too
  absl::flat_hash_set<std::string> replaced_;              // initializers whose uses were taken away
  absl::flat_hash_map<std::string, std::string> renamed_;  // what its uses read at Finish
  absl::flat_hash_set<std::string> made_;                  // results of new nodes
  absl::flat_hash_set<std::string> aliases_;               // initializers without contents
  int64_t budget_;                                         // bytes of copies that may still be made
  int64_t comparisons_;                                    // bytes that may still be compared
  absl::flat_hash_map<std::tuple<std::string, std::string, bool>, bool> copies_;  // what was compared
  google::protobuf::RepeatedPtrField<onnx::NodeProto> nodes_;
};

}  // namespace pipec
