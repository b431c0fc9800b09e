// What the names of an ONNX graph stand for while it is imported.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "compiler/ir/graph.h"

namespace pipec {

// An operand that the caller left out.
struct Absent {};

// A sequence whose length is known: the graph holds its elements, the sequence itself is gone.
struct Sequence {
  DType dtype = DType::kUndefined;  // of every element
  std::vector<Value*> elements;
};

// An optional without an element. One with an element is that element.
struct EmptyOptional {};

// The last alternative: why nothing could be made of the name (Unimplemented), naming the node that was
// refused. It is told to whoever needs the name; a model in which nobody does is accepted.
using Meaning = std::variant<Absent, Value*, Sequence, EmptyOptional, absl::Status>;

// "a sequence of 3 tensors", for messages.
std::string Describe(const Meaning& meaning);

// The tensor, or null if absent. Errors: the refusal; InvalidArgument if it is no tensor.
absl::StatusOr<Value*> TensorOrAbsent(const Meaning& meaning);
// The tensor. Errors: the same; InvalidArgument if it is absent.
absl::StatusOr<Value*> TensorOf(const Meaning& meaning);

// The names of one graph, subgraph or function body.
class Scope {
 public:
  // A subgraph sees the names of the graph around it; a function body sees none.
  explicit Scope(const Scope* outer = nullptr) : outer_(outer) {}

  // Null if no name like this is visible. The innermost counts.
  const Meaning* Find(const std::string& name) const;
  bool Owns(const std::string& name) const { return meanings_.contains(name); }
  void Set(const std::string& name, Meaning meaning);
  // Values that have names elsewhere, although none of this scope stands for them.
  void KeepNames(const std::vector<Value*>& values) { named_.insert(values.begin(), values.end()); }
  // Whether a visible name stands for this value, or it was given to KeepNames.
  bool Names(const Value* value) const;

 private:
  const Scope* outer_;
  absl::flat_hash_map<std::string, Meaning> meanings_;
  absl::flat_hash_set<const Value*> named_;
};

}  // namespace pipec
