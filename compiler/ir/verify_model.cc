// What a module promises at every level. VerifyModel refuses:
//   structure  - an operand that is not defined before its use, or does not belong to the graph
//              - use lists that do not say what the operands say
//              - a result whose producer does not list it, a result without producer, an input that is not
//              among the inputs
//              - two values or two nodes of one name, an empty name
//   types      - a value without element type or with a negative dimension
//              - a batch axis that does not exist, or that does not hold whole samples of the microbatch
//   contents   - contents whose length is not the type's; contents of anything but constants and parameters;
//              contents stored in another type than the value's, but for float32 parameters
//   outputs    - an output that does not belong to the graph
//   kinds      - a forward node with an origin, an origin that does not come before its node
#include <algorithm>
#include <string>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "compiler/ir/verify.h"
#include "runtime/base/counted.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

absl::Status Broken(const Value& value, absl::string_view what) {
  return absl::InternalError(absl::StrCat("value '", value.name(), "' ", what));
}

absl::Status Broken(const Node& node, absl::string_view what) {
  return absl::InternalError(absl::StrCat("node '", node.name(), "' (", node.op(), ") ", what));
}

absl::Status CheckContents(const Value& value) {
  const TensorData& data = value.data;
  const bool has_contents = data.bytes || data.file;
  if (value.kind() != ValueKind::kConstant && value.kind() != ValueKind::kParameter) {
    return has_contents ? Broken(value, "has contents, but is neither constant nor parameter")
                        : absl::OkStatus();
  }
  if (data.bytes && data.file) return Broken(value, "has contents both in memory and in a file");
  if (!has_contents) return absl::OkStatus();
  const bool narrow = data.stored != DType::kUndefined;
  if (narrow && (value.kind() != ValueKind::kParameter || value.type.dtype != DType::kFloat32)) {
    return Broken(value,
                  absl::StrCat("has contents stored as ", Name(data.stored), ", but is no float32 weight"));
  }
  const TensorType stored{narrow ? data.stored : value.type.dtype, value.type.shape};
  const uint64_t wanted = static_cast<uint64_t>(stored.bytes());
  if (data.length != wanted || (data.bytes && data.bytes->size() != wanted)) {
    return Broken(value, absl::StrCat("has contents of ", data.bytes ? data.bytes->size() : data.length,
                                      " bytes, its type ", ToString(stored), " needs ", wanted));
  }
  return absl::OkStatus();
}

absl::Status CheckType(const Value& value, int64_t microbatch_size) {
  if (value.type.dtype == DType::kUndefined) return Broken(value, "has no type");
  for (int64_t dim : value.type.shape) {
    if (dim < 0) return Broken(value, absl::StrCat("has a negative dimension: ", ToString(value.type)));
  }
  if (value.batch_axis == -1) return absl::OkStatus();
  if (value.batch_axis < -1 || value.batch_axis >= value.type.shape.size()) {
    return Broken(value,
                  absl::StrCat("of type ", ToString(value.type), " has batch axis ", value.batch_axis));
  }
  const int64_t size = value.type.shape[value.batch_axis];
  const bool is_fed = value.kind() == ValueKind::kInput;  // one entry a sample
  if (microbatch_size < 1 || (is_fed ? size != microbatch_size : size % microbatch_size != 0)) {
    return Broken(value, absl::StrCat("of type ", ToString(value.type), " has batch axis ", value.batch_axis,
                                      ", but a microbatch has ", Counted(microbatch_size, "sample", "samples")));
  }
  return absl::OkStatus();
}

absl::Status CheckNames(const Graph& graph, absl::Span<Value* const> values, absl::Span<Node* const> nodes) {
  for (const Value* value : values) {
    if (value->name().empty()) return absl::InternalError("a value has no name");
    // Of two values of one name only one can be found by it.
    const Value* found = graph.FindValue(value->name());
    if (!found) return Broken(*value, "is not found by its name");
    if (found != value) return Broken(*value, "shares its name with another value");
  }
  absl::flat_hash_set<absl::string_view> names;
  names.reserve(nodes.size());
  for (const Node* node : nodes) {
    if (node->name().empty() || !names.insert(node->name()).second) {
      return Broken(*node, "has no name, or shares it with another node");
    }
  }
  return absl::OkStatus();
}

// The nodes of a graph by place in execution order.
using Places = absl::flat_hash_map<const Node*, int>;

// Whether something made by `producer` is there when the node at `place` runs. Which results a node makes is
// checked with that node, which comes before.
bool Precedes(const Node* producer, int place, const Places& places) {
  auto it = places.find(producer);
  return it != places.end() && it->second < place;
}

absl::Status CheckNode(const Graph& graph, const Node& node, int place, const Places& places,
                       const absl::flat_hash_set<const Value*>& sources) {
  if (&node.graph() != &graph) return Broken(node, "belongs to another graph");
  for (int i = 0; i < node.inputs().size(); ++i) {
    const Value* input = node.inputs()[i];
    if (!input) continue;
    const bool defined =
        input->producer() ? Precedes(input->producer(), place, places) : sources.contains(input);
    if (!defined) return Broken(node, absl::StrCat("uses operand ", i, " before it is defined"));
  }
  for (int k = 0; k < node.outputs().size(); ++k) {
    const Value* output = node.outputs()[k];
    if (output && (output->producer() != &node || output->output_index() != k)) {
      return Broken(*output, absl::StrCat("does not know that node '", node.name(), "' makes it"));
    }
  }
  if (node.kind == Kind::kF && node.origin) return Broken(node, "is a forward node, but has an origin");
  if (node.origin && !Precedes(node.origin, place, places))
    return Broken(node, "has an origin that does not come before it");
  return absl::OkStatus();
}

// Every operand is in the use list of its value, and nothing else is: the listed uses are operands, each
// listed once, and there are as many as operands.
absl::Status CheckUses(absl::Span<Value* const> values, absl::Span<Node* const> nodes, const Places& places) {
  int64_t listed = 0, operands = 0;
  std::vector<Use> uses;
  for (const Value* value : values) {
    uses.assign(value->uses().begin(), value->uses().end());
    std::sort(uses.begin(), uses.end(), [](const Use& a, const Use& b) {
      return std::tie(a.node, a.index) < std::tie(b.node, b.index);
    });
    const bool twice = std::adjacent_find(uses.begin(), uses.end()) != uses.end();
    for (const Use& use : uses) {
      if (twice || !places.contains(use.node) || use.node->input(use.index) != value)
        return Broken(*value, "lists a use that is none, or one twice");
    }
    listed += static_cast<int64_t>(uses.size());
  }
  for (const Node* node : nodes) {
    for (const Value* input : node->inputs()) operands += input != nullptr;
  }
  if (listed == operands) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("values have ", listed, " uses listed, but there are ", operands, " operands"));
}

}  // namespace

absl::Status VerifyModel(const Module& module) {
  const Graph& graph = module.graph;
  const std::vector<Value*> values = graph.Values();
  const std::vector<Node*> nodes = graph.Nodes();
  absl::flat_hash_set<const Value*> sources;  // what no node makes
  int64_t results = 0;
  for (const Value* value : values) {
    RETURN_IF_ERROR(CheckType(*value, module.microbatch_size));
    RETURN_IF_ERROR(CheckContents(*value));
    if ((value->kind() == ValueKind::kResult) != (value->producer() != nullptr)) {
      return Broken(*value, "is a result without a producer, or has one without being a result");
    }
    if (value->producer()) {
      ++results;
    } else {
      sources.insert(value);
    }
  }
  for (const Value* input : graph.inputs()) {
    if (!sources.contains(input) || input->kind() != ValueKind::kInput)
      return absl::InternalError("an input is none");
  }
  RETURN_IF_ERROR(CheckNames(graph, values, nodes));
  Places places;
  places.reserve(nodes.size());
  for (int k = 0; k < nodes.size(); ++k) places.emplace(nodes[k], k);
  for (int k = 0; k < nodes.size(); ++k) {
    RETURN_IF_ERROR(CheckNode(graph, *nodes[k], k, places, sources));
    for (const Value* output : nodes[k]->outputs()) results -= output != nullptr;
  }
  if (results != 0) return absl::InternalError("a result belongs to a node that is not in the graph");
  RETURN_IF_ERROR(CheckUses(values, nodes, places));
  for (const Value* output : graph.outputs) {
    if (!output || (output->producer() ? !places.contains(output->producer()) : !sources.contains(output)))
      return absl::InternalError("an output of the model is not a value of the graph");
  }
  return absl::OkStatus();
}

}  // namespace pipec
