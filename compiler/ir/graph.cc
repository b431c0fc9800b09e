#include "compiler/ir/graph.h"

#include <algorithm>
#include <cassert>

#include "absl/strings/str_cat.h"

namespace pipec {
namespace {

// The first of wanted, wanted_1, wanted_2, ... that is not in `taken`; counters make this linear in total.
template <typename Taken>
std::string Unique(absl::string_view wanted, const Taken& taken,
                   absl::flat_hash_map<std::string, int>& counters) {
  std::string name(wanted);
  while (name.empty() || taken.contains(name))
    name = absl::StrCat(wanted, "_", ++counters[std::string(wanted)]);
  return name;
}

}  // namespace

char Letter(Kind kind) { return "FIWU"[static_cast<int>(kind)]; }

void Node::SetInput(int i, Value* value) {
  Graph::RemoveUse(this, i);
  Graph::AddUse(this, i, value);
}

void Node::Become(absl::string_view op, absl::string_view domain, std::vector<Value*> inputs) {
  for (int i = 0; i < inputs_.size(); ++i) Graph::RemoveUse(this, i);
  op_ = std::string(op);
  domain_ = std::string(domain);
  inputs_.assign(inputs.size(), nullptr);
  use_places_.assign(inputs.size(), -1);
  for (int i = 0; i < inputs.size(); ++i) Graph::AddUse(this, i, inputs[i]);
}

Node* Node::next() const {
  auto it = std::next(position_);
  return it == graph_->nodes_.end() ? nullptr : it->get();
}

Node* Node::previous() const {
  return position_ == graph_->nodes_.begin() ? nullptr : std::prev(position_)->get();
}

Graph::~Graph() = default;

std::string Graph::UniqueValueName(absl::string_view wanted) {
  return Unique(wanted, value_names_, name_counters_);
}
std::string Graph::UniqueNodeName(absl::string_view wanted) {
  return Unique(wanted, node_names_, name_counters_);
}

Value* Graph::AddValue(ValueKind kind, absl::string_view name, TensorType type) {
  auto value = std::unique_ptr<Value>(new Value);
  value->name_ = UniqueValueName(name);
  value->kind_ = kind;
  value->type = std::move(type);
  Value* result = value.get();
  values_.push_back(std::move(value));
  value_array_.clear();
  result->position_ = std::prev(values_.end());
  value_names_[result->name_] = result;
  if (kind == ValueKind::kInput) inputs_.push_back(result);
  return result;
}

Value* Graph::AddConstant(absl::string_view name, TensorType type, std::string bytes) {
  assert(type.bytes() == bytes.size());
  Value* value = AddValue(ValueKind::kConstant, name, std::move(type));
  value->data.length = bytes.size();
  value->data.bytes = std::make_shared<const std::string>(std::move(bytes));
  return value;
}

Node* Graph::AddNode(NodeSpec spec, Node* before) {
  auto owned = std::unique_ptr<Node>(new Node);
  Node* node = owned.get();
  node->graph_ = this;
  node->name_ = UniqueNodeName(spec.name.empty() ? spec.op : spec.name);
  node->op_ = std::move(spec.op);
  node->domain_ = std::move(spec.domain);
  node->attributes = std::move(spec.attributes);
  node->kind = spec.kind;
  node->stage = spec.stage;
  node->origin = spec.origin;
  node_names_[node->name_] = node;
  node->position_ = nodes_.insert(before ? before->position_ : nodes_.end(), std::move(owned));
  node_array_.clear();
  node->inputs_.assign(spec.inputs.size(), nullptr);
  node->use_places_.assign(spec.inputs.size(), -1);
  for (int i = 0; i < spec.inputs.size(); ++i) AddUse(node, i, spec.inputs[i]);
  for (int i = 0; i < spec.outputs.size(); ++i) {
    if (spec.outputs[i].dtype == DType::kUndefined) {
      node->outputs_.push_back(nullptr);
      continue;
    }
    AddOutput(node, std::move(spec.outputs[i]), i < spec.output_names.size() ? spec.output_names[i] : "");
  }
  return node;
}

Value* Graph::AddOutput(Node* node, TensorType type, absl::string_view name) {
  std::string wanted(name);
  if (wanted.empty()) {
    wanted = node->outputs_.empty() ? node->name_ : absl::StrCat(node->name_, ":", node->outputs_.size());
  }
  Value* value = AddValue(ValueKind::kResult, wanted, std::move(type));
  value->producer_ = node;
  value->output_index_ = static_cast<int>(node->outputs_.size());
  node->outputs_.push_back(value);
  return value;
}

void Graph::AddUse(Node* node, int index, Value* value) {
  node->inputs_[index] = value;
  if (!value) return;
  node->use_places_[index] = static_cast<int>(value->uses_.size());
  value->uses_.push_back({node, index});
}

// The last use takes the place of the one that goes: constant time, also for a constant with thousands of
// uses.
void Graph::RemoveUse(Node* node, int index) {
  Value* value = node->inputs_[index];
  if (!value) return;
  const int place = node->use_places_[index];
  const Use last = value->uses_.back();
  value->uses_[place] = last;
  last.node->use_places_[last.index] = place;
  value->uses_.pop_back();
  node->inputs_[index] = nullptr;
}

void Graph::ReplaceAllUses(Value* from, Value* to) {
  std::vector<Use> uses = std::move(from->uses_);
  from->uses_.clear();
  for (const Use& use : uses) {
    AddUse(use.node, use.index, to);
  }
  std::replace(outputs.begin(), outputs.end(), from, to);
}

void Graph::Erase(Node* node) {
  for (int i = 0; i < node->inputs_.size(); ++i) RemoveUse(node, i);
  for (Value* output : node->outputs_) {
    if (!output) continue;
    assert(output->uses_.empty());
    value_names_.erase(output->name_);
    values_.erase(output->position_);
  }
  value_array_.clear();
  node_array_.clear();
  node_names_.erase(node->name_);
  nodes_.erase(node->position_);
}

void Graph::Erase(Value* value) {
  assert(value->producer_ == nullptr && value->uses_.empty());
  if (value->kind_ == ValueKind::kInput) inputs_.erase(std::find(inputs_.begin(), inputs_.end(), value));
  value_names_.erase(value->name_);
  values_.erase(value->position_);
  value_array_.clear();
}

void Graph::Move(Node* node, Node* before) {
  if (node == before) return;
  node_array_.clear();
  nodes_.splice(before ? before->position_ : nodes_.end(), nodes_, node->position_);
}

void Graph::Rename(Value* value, absl::string_view name) {
  if (value->name_ == name) return;
  value_names_.erase(value->name_);
  value->name_ = UniqueValueName(name);
  value_names_[value->name_] = value;
}

std::vector<Node*> Graph::Nodes() const {
  if (node_array_.empty()) {
    node_array_.reserve(nodes_.size());
    for (const auto& node : nodes_) node_array_.push_back(node.get());
  }
  return node_array_;
}

std::vector<Value*> Graph::Values() const {
  if (value_array_.empty()) {
    value_array_.reserve(values_.size());
    for (const auto& value : values_) value_array_.push_back(value.get());
  }
  return value_array_;
}

void Graph::NumberNodes() {
  int index = 0;
  for (Node* node : Nodes()) node->index = index++;
}

Value* Graph::FindValue(absl::string_view name) const {
  auto it = value_names_.find(name);
  return it == value_names_.end() ? nullptr : it->second;
}

}  // namespace pipec
