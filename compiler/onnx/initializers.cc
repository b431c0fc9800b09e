#include "compiler/onnx/initializers.h"

#include <fstream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "compiler/onnx/first_names.h"
#include "compiler/onnx/read/all_initializers.h"
#include "compiler/onnx/read/sparse_tensor.h"
#include "runtime/base/status.h"
#include "runtime/base/tiny_types.h"

namespace pipec {
namespace {

// Small integer tensors are what shapes are made of: needed now, also when they lie in a file. Elements of 4
// and 2 bits are packed there, and a plan refers to files only as they lie in memory.
absl::Status LoadIfNeeded(Tensor& tensor) {
  constexpr uint64_t kSmallBytes = 4096, kMaxPacked = uint64_t{1} << 28;
  TensorData& data = tensor.data;
  const bool packed = BitsInFile(tensor.type.dtype) < 8;
  if (!data.file || IsFloat(tensor.type.dtype) || (data.length > kSmallBytes && !packed)) {
    return absl::OkStatus();
  }
  if (data.length > kMaxPacked) {
    return absl::UnimplementedError(
        absl::StrCat("is ", ToString(tensor.type),
                     " in another file: elements of less than 8 bits are read from there up to 256 MiB"));
  }
  std::string bytes(data.length, '\0');
  std::ifstream file(*data.file, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(data.offset));
  if (!file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()))) {
    return absl::NotFoundError(absl::StrCat(*data.file, " cannot be read"));
  }
  if (packed) bytes = UnpackElements(tensor.type.dtype, bytes, tensor.type.elements());
  const uint64_t length = bytes.size();
  data = {.bytes = std::make_shared<const std::string>(std::move(bytes)), .length = length};
  return absl::OkStatus();
}

std::string Quote(const std::string& name) { return absl::StrCat("initializer '", name, "'"); }

absl::Status CheckNew(const std::string& name, const Scope& scope) {
  if (!name.empty() && !scope.Owns(name)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(Quote(name), " has no name, or the name of another"));
}

bool InFile(const onnx::TensorProto& proto) { return proto.data_location() == onnx::TensorProto::EXTERNAL; }

// "3 float initializer(s) of shape [] ...: a, b, c".
void AddNote(const std::vector<std::string>& names, absl::string_view what, std::vector<std::string>& notes) {
  if (names.empty()) return;
  notes.push_back(absl::StrCat(names.size(), " float initializer(s) ", what,
                               " are taken as constants, not as parameters: ", FirstNames(names)));
}

}  // namespace

Initializers::Initializers(onnx::ModelProto& model, ExternalDataResolver external, Graph& graph)
    : external_(std::move(external)), graph_(graph) {
  for (const auto& output : model.graph().output()) not_for_nodes_.insert(output.name());
  ForEachSubgraphInitializer(model, [&](onnx::TensorProto& proto) { ++in_subgraphs_[proto.name()]; });
}

absl::StatusOr<Value*> Initializers::AddTensor(const std::string& name, absl::StatusOr<Tensor> tensor,
                                               bool may_learn, const PyTorchParameters* pytorch) {
  absl::Status status = tensor.status();
  if (status.ok()) status = LoadIfNeeded(*tensor);
  if (!status.ok()) {
    return absl::Status(status.code(), absl::StrCat(Quote(name), ": ", status.message()));
  }
  const bool is_float = IsFloat(tensor->type.dtype);
  const bool scalar = is_float && tensor->type.shape.empty();
  const bool kept = pytorch && (pytorch->kept.contains(name) || pytorch->buffers.contains(name));
  const bool known = pytorch && pytorch->scalars.has_value();
  if (scalar && !known) scalars_.push_back(name);
  const bool learns =
      kept || (is_float && may_learn && (!scalar || (known && pytorch->scalars->contains(name))));
  Value* value =
      graph_.AddValue(learns ? ValueKind::kParameter : ValueKind::kConstant, name, std::move(tensor->type));
  value->data = std::move(tensor->data);
  return value;
}

absl::Status Initializers::AddSparse(const onnx::GraphProto& graph, Scope& scope) {
  for (const auto& proto : graph.sparse_initializer()) {
    const std::string& name = proto.values().name();
    RETURN_IF_ERROR(CheckNew(name, scope));
    ASSIGN_OR_RETURN(Value * value, AddTensor(name, Densify(proto), false));
    if (IsFloat(value->type.dtype) && !value->type.shape.empty()) sparse_.push_back(name);
    scope.Set(name, value);
  }
  return absl::OkStatus();
}

absl::Status Initializers::Add(onnx::GraphProto& graph, const PyTorchParameters& pytorch, Scope& scope) {
  for (const auto& [name, of] : pytorch.tied) not_for_nodes_.insert(name);
  not_for_nodes_.insert(pytorch.kept.begin(), pytorch.kept.end());
  not_for_nodes_.insert(pytorch.buffers.begin(), pytorch.buffers.end());
  for (auto& proto : *graph.mutable_initializer()) {
    RETURN_IF_ERROR(CheckNew(proto.name(), scope));
    absl::StatusOr<Tensor> tensor;
    if (auto tied = pytorch.tied.find(proto.name()); tied != pytorch.tied.end()) {
      const Value* original = graph_.FindValue(tied->second);
      tensor = Tensor{original->type, original->data};
    } else {
      tensor = InFile(proto) ? external_.Resolve(proto) : TakeInlineTensor(proto);
    }
    ASSIGN_OR_RETURN(Value * value, AddTensor(proto.name(), std::move(tensor), true, &pytorch));
    scope.Set(proto.name(), value);
  }
  return AddSparse(graph, scope);
}

absl::Status Initializers::AddOnce(const onnx::GraphProto& subgraph, Scope& scope) {
  if (subgraph.initializer_size() + subgraph.sparse_initializer_size() == 0) return absl::OkStatus();
  if (!subgraphs_.contains(&subgraph)) {
    Scope own;
    for (const auto& proto : subgraph.initializer()) {
      RETURN_IF_ERROR(CheckNew(proto.name(), own));
      // A checkpoint finds a parameter by its name in the file, which must be the only one.
      const bool shared = in_subgraphs_[proto.name()] > 1 || graph_.FindValue(proto.name());
      ASSIGN_OR_RETURN(
          Value * value,
          AddTensor(proto.name(), InFile(proto) ? external_.Resolve(proto) : ReadInlineTensor(proto),
                    !shared));
      if (shared && IsFloat(value->type.dtype) && !value->type.shape.empty()) shared_.push_back(proto.name());
      own.Set(proto.name(), value);
    }
    RETURN_IF_ERROR(AddSparse(subgraph, own));
    subgraphs_.emplace(&subgraph, std::move(own));
  }
  const Scope& own = subgraphs_.at(&subgraph);
  for (const auto& proto : subgraph.initializer()) scope.Set(proto.name(), *own.Find(proto.name()));
  for (const auto& proto : subgraph.sparse_initializer()) {
    scope.Set(proto.values().name(), *own.Find(proto.values().name()));
  }
  return absl::OkStatus();
}

std::vector<std::string> Initializers::Notes() const {
  std::vector<std::string> notes;
  AddNote(scalars_, "of shape []", notes);
  AddNote(sparse_, "stored as sparse tensors", notes);
  AddNote(shared_, "of subgraphs, whose names others have as well,", notes);
  std::vector<std::string> unused;
  for (const Value* value : graph_.Values()) {
    const bool idle = value->kind() == ValueKind::kParameter && value->uses().empty();
    if (idle && !not_for_nodes_.contains(value->name())) unused.push_back(value->name());
  }
  if (!unused.empty()) {
    notes.push_back(
        absl::StrCat(unused.size(), " parameter(s) that no output depends on: ", FirstNames(unused)));
  }
  return notes;
}

}  // namespace pipec
