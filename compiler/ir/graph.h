// The compiler's one graph: values, nodes that make and use them, in an order that can be executed.
//
// A graph describes one microbatch on one replica. It is ONNX-shaped: an op is a name in a domain ("" is
// ai.onnx in its newest opset, "ai.pipec" the helper ops of compiler/ops/README.md), operands are
// positional, an absent optional operand is a null. Every value has a concrete type. Uses are kept
// with the value, so passes never search.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/base/attributes.h"
#include "runtime/base/tensor_type.h"

namespace pipec {

class Graph;
class Node;
class Value;

inline constexpr char kPipecDomain[] = "ai.pipec";

// What a node contributes to (DESIGN.md, "Words"): forward, gradient of an activation, gradient of a
// parameter, update.
enum class Kind : uint8_t { kF, kI, kW, kU };
char Letter(Kind kind);

// Contents of a parameter or constant: bytes in memory, or a slice of a file that nobody has read yet.
struct TensorData {
  std::shared_ptr<const std::string> bytes;  // row-major, little-endian; null if the data is in a file
  std::shared_ptr<const std::string> file;   // absolute path; null if the data is in memory
  uint64_t offset = 0;
  uint64_t length = 0;
  // Element type of the contents where it is not the value's: a weight that the model holds in 16-bit floats
  // and the graph in float32.
  DType stored = DType::kUndefined;
};

struct Use {
  Node* node;
  int index;  // which operand of `node`
  bool operator==(const Use&) const = default;
};

enum class ValueKind : uint8_t {
  kInput,        // fed anew for every microbatch
  kParameter,    // a weight of the model: kept, trained unless frozen
  kConstant,     // known at compile time
  kAccumulator,  // the gradient of one use of a parameter, summed over microbatches
  kState,        // optimizer state of a parameter
  kResult,       // made by a node
};

class Value {
 public:
  Value(const Value&) = delete;
  Value& operator=(const Value&) = delete;

  // Unique within its graph.
  const std::string& name() const { return name_; }
  ValueKind kind() const { return kind_; }
  // The node that makes this value, null unless kind is kResult, and which of its outputs it is.
  Node* producer() const { return producer_; }
  int output_index() const { return output_index_; }
  // In no particular order; sort by Node::index where the order matters.
  absl::Span<const Use> uses() const { return uses_; }

  TensorType type;
  // Along which axis the samples of the microbatch lie, or -1: the same for every sample, or not known.
  // Samples lie one after the other, each with shape[batch_axis] / microbatch size entries: 1 for an input,
  // more where a Reshape merged the axis with what lies behind it ([B,T,H] -> [B*T,H]).
  int batch_axis = -1;
  // A constant made of the number of samples (a folded Shape or Size of what has them, and what was computed
  // from it): a sum over samples divided by it is their mean.
  bool counts_samples = false;
  // What an output of the model is called outside, if its own name is another value's; "": its name.
  std::string output_name;
  // Only for kParameter and kConstant. A model made for planning only has parameters without data.
  TensorData data;

 private:
  friend class Graph;
  friend class Node;
  Value() = default;
  std::string name_;
  ValueKind kind_ = ValueKind::kResult;
  Node* producer_ = nullptr;
  int output_index_ = 0;
  std::vector<Use> uses_;
  std::list<std::unique_ptr<Value>>::iterator position_;
};

class Node {
 public:
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  const std::string& op() const { return op_; }
  const std::string& domain() const { return domain_; }
  bool Is(absl::string_view op, absl::string_view domain = "") const {
    return op_ == op && domain_ == domain;
  }
  // The model's name for the node, or one made from its op; unique within the graph.
  const std::string& name() const { return name_; }

  // Entries may be null (absent optional operands).
  absl::Span<Value* const> inputs() const { return inputs_; }
  absl::Span<Value* const> outputs() const { return outputs_; }
  // Null if out of range or absent.
  Value* input(int i) const { return i < inputs_.size() ? inputs_[i] : nullptr; }
  Value* output(int i) const { return i < outputs_.size() ? outputs_[i] : nullptr; }
  void SetInput(int i, Value* value);
  // Another op with other operands in the same place: name, attributes and results stay what they are.
  void Become(absl::string_view op, absl::string_view domain, std::vector<Value*> inputs);

  // Neighbours in execution order; null at the ends.
  Node* next() const;
  Node* previous() const;
  Graph& graph() const { return *graph_; }

  Attributes attributes;
  Kind kind = Kind::kF;
  // -1 until level "staged".
  int stage = -1;
  // The forward node whose gradient or update this node computes: it lives in that node's stage. Null
  // for forward nodes.
  Node* origin = nullptr;
  // Position in execution order; valid after Graph::NumberNodes and until nodes are inserted.
  int index = -1;

 private:
  friend class Graph;
  Node() = default;
  std::string op_, domain_, name_;
  std::vector<Value*> inputs_, outputs_;
  std::vector<int> use_places_;  // input i is entry use_places_[i] of its value's uses
  Graph* graph_ = nullptr;
  std::list<std::unique_ptr<Node>>::iterator position_;
};

// What Graph::AddNode makes: op and operands; outputs get fresh values of these types. An output of type
// kUndefined is absent (an optional output that nobody asked for): a null in Node::outputs().
struct NodeSpec {
  std::string op;
  std::string domain;
  std::string name;  // "" : made from the op
  std::vector<Value*> inputs;
  Attributes attributes;
  std::vector<TensorType> outputs;
  std::vector<std::string> output_names;  // "" or missing: made from the node's name
  Kind kind = Kind::kF;
  int stage = -1;
  Node* origin = nullptr;
};

class Graph {
 public:
  Graph() = default;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph();

  // A value without producer. If the name is taken, "_1", "_2", ... is appended.
  Value* AddValue(ValueKind kind, absl::string_view name, TensorType type);
  Value* AddConstant(absl::string_view name, TensorType type, std::string bytes);

  // Adds a node before `before`, or at the end if that is null.
  Node* AddNode(NodeSpec spec, Node* before = nullptr);
  // Adds one more output to a node.
  Value* AddOutput(Node* node, TensorType type, absl::string_view name = "");

  // Every use of `from`, as operand or as output of the graph, becomes a use of `to`.
  void ReplaceAllUses(Value* from, Value* to);
  // Takes `node` out; its outputs must have no uses.
  void Erase(Node* node);
  // Takes out a value without producer and without uses (and its place among the inputs).
  void Erase(Value* value);
  // Moves `node` before `before` (null: to the end) in execution order.
  void Move(Node* node, Node* before);
  // Renames; if the name is taken, "_1", ... is appended.
  void Rename(Value* value, absl::string_view name);

  Node* first_node() const { return nodes_.empty() ? nullptr : nodes_.front().get(); }
  Node* last_node() const { return nodes_.empty() ? nullptr : nodes_.back().get(); }
  int num_nodes() const { return static_cast<int>(nodes_.size()); }
  // A copy of the node list: safe to walk while the graph changes, as long as what is erased is not met.
  std::vector<Node*> Nodes() const;
  // All values without producer and all node outputs, in the order in which they were made.
  std::vector<Value*> Values() const;
  // Writes Node::index = 0, 1, ... in execution order.
  void NumberNodes();

  // Null if there is none of this name.
  Value* FindValue(absl::string_view name) const;

  // The model's inputs (kInput, in its order) and outputs. An output may be any value, also one used inside.
  const std::vector<Value*>& inputs() const { return inputs_; }
  std::vector<Value*> outputs;

 private:
  friend class Node;
  std::string UniqueValueName(absl::string_view wanted);
  std::string UniqueNodeName(absl::string_view wanted);
  static void AddUse(Node* node, int index, Value* value);
  static void RemoveUse(Node* node, int index);

  std::list<std::unique_ptr<Node>> nodes_;
  std::list<std::unique_ptr<Value>> values_;
  // What Nodes() and Values() last gave; empty once the lists have changed. Walks over lists that are scattered
  // in memory would otherwise be most of what a pass or a verifier does.
  mutable std::vector<Node*> node_array_;
  mutable std::vector<Value*> value_array_;
  std::vector<Value*> inputs_;
  // Keys lie in the values and nodes themselves: who looks one up by its name finds it in the cache.
  absl::flat_hash_map<absl::string_view, Value*> value_names_;
  absl::flat_hash_map<absl::string_view, Node*> node_names_;
  absl::flat_hash_map<std::string, int> name_counters_;
};

}  // namespace pipec
