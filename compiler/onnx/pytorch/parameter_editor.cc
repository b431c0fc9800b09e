#include "compiler/onnx/pytorch/parameter_editor.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/onnx/read/tensor_data.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

// Each tensor of a model is made at most once under its own name, and once in PyTorch's layout; biases of
// zeros that were merged are small.
constexpr int64_t kCopies = 3;
constexpr int64_t kSpareBytes = 16 << 20;

std::vector<int64_t> Dims(const onnx::TensorProto& proto) {
  return {proto.dims().begin(), proto.dims().end()};
}

std::string Transposed(const std::string& bytes, int64_t rows, int64_t columns) {
  if (bytes.empty()) return bytes;
  const size_t size = bytes.size() / (rows * columns);
  std::string result(bytes.size(), '\0');
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      std::memcpy(&result[(j * rows + i) * size], &bytes[(i * columns + j) * size], size);
    }
  }
  return result;
}

absl::StatusOr<std::string> Read(const onnx::TensorProto& proto, ExternalDataResolver& external) {
  const bool in_file = proto.data_location() == onnx::TensorProto::EXTERNAL;
  ASSIGN_OR_RETURN(const Tensor tensor, in_file ? external.Resolve(proto) : ReadInlineTensor(proto));
  if (tensor.data.bytes) return *tensor.data.bytes;
  if (!tensor.data.file) return absl::NotFoundError("its file is missing");
  ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(*tensor.data.file));
  return std::string(file.bytes().substr(tensor.data.offset, tensor.data.length));
}

void AddUses(const onnx::GraphProto& graph, absl::flat_hash_set<std::string>& uses) {
  for (const auto& node : graph.node()) {
    uses.insert(node.input().begin(), node.input().end());
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g()) AddUses(attribute.g(), uses);
      for (const auto& subgraph : attribute.graphs()) AddUses(subgraph, uses);
    }
  }
  for (const auto& output : graph.output()) uses.insert(output.name());
}

// Operands of nodes; subgraphs may read the graph's values too.
void Rename(const absl::flat_hash_map<std::string, std::string>& renamed, onnx::GraphProto& graph) {
  for (auto& node : *graph.mutable_node()) {
    for (std::string& name : *node.mutable_input()) {
      if (auto it = renamed.find(name); it != renamed.end()) name = it->second;
    }
    for (auto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) Rename(renamed, *attribute.mutable_g());
      for (auto& subgraph : *attribute.mutable_graphs()) Rename(renamed, subgraph);
    }
  }
}

}  // namespace

ParameterEditor::ParameterEditor(onnx::GraphProto& graph, ExternalDataResolver& external)
    : graph_(graph), external_(external) {
  for (int i = 0; i < graph.initializer_size(); ++i) index_.emplace(graph.initializer(i).name(), i);
  for (const auto& input : graph.input()) {
    if (index_.contains(input.name())) defaults_.insert(input.name());
  }
  int64_t bytes = 0;
  for (const auto& proto : graph.initializer()) {
    if (const absl::StatusOr<TensorType> type = TypeOf(proto); type.ok()) bytes += type->bytes();
  }
  budget_ = comparisons_ = kSpareBytes + kCopies * bytes;
}

const onnx::TensorProto* ParameterEditor::Find(const std::string& initializer) const {
  auto it = index_.find(initializer);
  return it == index_.end() || defaults_.contains(initializer) ? nullptr : &graph_.initializer(it->second);
}

absl::StatusOr<std::string> ParameterEditor::Contents(const std::string& initializer) {
  absl::StatusOr<std::string> contents = Read(graph_.initializer(index_.at(initializer)), external_);
  if (contents.ok()) return contents;
  return absl::Status(contents.status().code(),
                      absl::StrCat("initializer '", initializer, "': ", contents.status().message()));
}

absl::StatusOr<bool> ParameterEditor::AreEqual(const std::string& a, const std::string& b, bool transposed) {
  const onnx::TensorProto *first = Find(a), *second = Find(b);
  if (!first || !second || first->data_type() != second->data_type()) return false;
  std::vector<int64_t> dims = Dims(*second);
  if (transposed) {
    if (dims.size() != 2) return false;
    std::swap(dims[0], dims[1]);
  }
  if (Dims(*first) != dims) return false;
  ASSIGN_OR_RETURN(const std::string one, Contents(a));
  ASSIGN_OR_RETURN(std::string other, Contents(b));
  if (transposed) other = Transposed(other, dims[1], dims[0]);
  return one == other;
}

absl::StatusOr<bool> ParameterEditor::IsCopy(const std::string& parameter, const std::string& operand,
                                             bool transposed) {
  if (parameter == operand && !transposed) return true;
  if (aliases_.contains(parameter) || aliases_.contains(operand)) return false;
  const auto [it, is_new] = copies_.try_emplace(std::make_tuple(parameter, operand, transposed), false);
  if (!is_new) return it->second;
  ASSIGN_OR_RETURN(const TensorType type, TypeOf(*Find(operand)));
  comparisons_ -= static_cast<int64_t>(type.bytes());
  if (comparisons_ < 0) return false;
  ASSIGN_OR_RETURN(it->second, AreEqual(parameter, operand, transposed));
  return it->second;
}

absl::StatusOr<bool> ParameterEditor::Use(onnx::NodeProto& node, int k, const std::string& parameter,
                                          bool transposed) {
  if (k >= node.input_size()) return false;
  const std::string operand = node.input(k);
  const onnx::TensorProto* from = Find(operand);
  if (!from || (transposed && from->dims_size() != 2)) return false;
  std::vector<int64_t> dims = Dims(*from);
  if (transposed) std::swap(dims[0], dims[1]);
  if (const onnx::TensorProto* there = Find(parameter)) {
    if (Dims(*there) != dims || there->data_type() != from->data_type()) return false;
    ASSIGN_OR_RETURN(const bool same, IsCopy(parameter, operand, transposed));
    if (!same) return false;
  } else {
    ASSIGN_OR_RETURN(std::string bytes, Contents(operand));
    budget_ -= static_cast<int64_t>(bytes.size());
    if (budget_ < 0) return false;
    if (transposed) bytes = Transposed(bytes, dims[1], dims[0]);
    Add(parameter, from->data_type(), dims, std::move(bytes));
  }
  const std::string value = transposed ? absl::StrCat(parameter, "/transposed") : parameter;
  if (transposed && !HasValue(value)) {
    onnx::NodeProto& transpose = AddNode("Transpose", value);
    transpose.add_input(parameter);
    auto& perm = *transpose.add_attribute();
    perm.set_name("perm");
    perm.set_type(onnx::AttributeProto::INTS);
    perm.add_ints(1);
    perm.add_ints(0);
  }
  if (value != operand) replaced_.insert(operand);
  node.set_input(k, value);
  return true;
}

void ParameterEditor::Replace(const std::string& initializer, const std::string& by) {
  renamed_[initializer] = by;
  replaced_.insert(initializer);
}

absl::Status ParameterEditor::MakeConstant(const std::string& initializer, bool kept) {
  if (renamed_.contains(initializer)) return absl::OkStatus();
  ASSIGN_OR_RETURN(std::string bytes, Contents(initializer));
  const onnx::TensorProto& from = *Find(initializer);
  onnx::TensorProto contents;
  contents.set_data_type(from.data_type());
  *contents.mutable_dims() = from.dims();
  contents.set_raw_data(std::move(bytes));
  const std::string constant = absl::StrCat(initializer, "/constant");
  auto& value = *AddNode("Constant", constant).add_attribute();
  value.set_name("value");
  value.set_type(onnx::AttributeProto::TENSOR);
  value.mutable_t()->Swap(&contents);
  renamed_[initializer] = constant;
  if (!kept) replaced_.insert(initializer);
  return absl::OkStatus();
}

void ParameterEditor::Add(const std::string& name, int data_type, std::vector<int64_t> dims,
                          std::string bytes) {
  index_[name] = graph_.initializer_size();
  onnx::TensorProto& proto = *graph_.add_initializer();
  proto.set_name(name);
  proto.set_data_type(data_type);
  proto.mutable_dims()->Assign(dims.begin(), dims.end());
  proto.set_raw_data(std::move(bytes));
}

void ParameterEditor::AddAlias(const std::string& name, const std::string& of) {
  const onnx::TensorProto& original = *Find(of);
  Add(name, original.data_type(), Dims(original), "");
  aliases_.insert(name);
}

onnx::NodeProto& ParameterEditor::AddNode(const std::string& op, const std::string& result) {
  onnx::NodeProto& node = *nodes_.Add();
  node.set_op_type(op);
  node.set_name(result);
  node.add_output(result);
  made_.insert(result);
  return node;
}

void ParameterEditor::Finish() {
  for (auto& node : *graph_.mutable_node()) nodes_.Add()->Swap(&node);
  graph_.mutable_node()->Swap(&nodes_);
  if (!renamed_.empty()) Rename(renamed_, graph_);
  absl::flat_hash_set<std::string> uses;
  AddUses(graph_, uses);
  google::protobuf::RepeatedPtrField<onnx::TensorProto> left;
  for (auto& proto : *graph_.mutable_initializer()) {
    if (!replaced_.contains(proto.name()) || uses.contains(proto.name())) left.Add()->Swap(&proto);
  }
  graph_.mutable_initializer()->Swap(&left);
}

}  // namespace pipec
