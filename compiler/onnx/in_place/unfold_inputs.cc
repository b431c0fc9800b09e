#include "compiler/onnx/in_place/unfold_inputs.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/onnx/in_place/stack_tensors.h"
#include "compiler/onnx/read/tensor_data.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

using Inputs = google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>;
using Dims = std::map<std::string, int64_t>;

std::optional<int64_t> Take(Dims& dims, const std::string& name) {
  auto it = dims.find(name);
  if (it == dims.end()) return std::nullopt;
  const int64_t value = it->second;
  dims.erase(it);
  return value;
}

// Names that nothing else may have.
absl::Status CheckFree(const onnx::GraphProto& graph, const UnfoldedInput& input) {
  for (const std::string& element : input.elements) {
    bool taken = false;
    for (const auto& info : graph.input()) taken |= info.name() == element;
    for (const auto& node : graph.node()) {
      for (const std::string& output : node.output()) taken |= output == element;
    }
    if (taken) {
      return absl::InvalidArgumentError(absl::StrCat("input '", input.name,
                                                     "': one of its tensors is called '", element,
                                                     "', which is the name of another value of the model"));
    }
  }
  return absl::OkStatus();
}

absl::Status UnfoldSequence(const onnx::TypeProto& type, Dims& dims, UnfoldedInput& input, Inputs& made) {
  const std::string length_name = absl::StrCat(input.name, ":length");
  const std::optional<int64_t> length = Take(dims, length_name);
  if (!length) {
    return absl::InvalidArgumentError(absl::StrCat(
        "input '", input.name,
        "' is a sequence, and the model does not say how many tensors it has; say it with --dim ",
        length_name, "=N"));
  }
  if (absl::Status status = CheckParts(*length); !status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--dim ", length_name, "=", *length, ": ", status.message()));
  }
  if (!type.has_tensor_type()) {
    return absl::UnimplementedError(
        absl::StrCat("input '", input.name, "' is a sequence of something else than tensors"));
  }
  input.dtype = DTypeOf(type.tensor_type().elem_type());
  for (int64_t i = 0; i < *length; ++i) {
    onnx::ValueInfoProto& element = *made.Add();
    element.set_name(absl::StrCat(input.name, ".", i));
    *element.mutable_type() = type;
    input.elements.push_back(element.name());
    if (!type.tensor_type().has_shape()) continue;
    auto& shape = *element.mutable_type()->mutable_tensor_type()->mutable_shape();
    for (int axis = 0; axis < shape.dim_size(); ++axis) {
      if (dims.contains(absl::StrCat(element.name(), ":", axis))) shape.mutable_dim(axis)->clear_dim_param();
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<UnfoldedInput>> UnfoldInputs(onnx::GraphProto& graph, Dims& dims) {
  std::vector<UnfoldedInput> unfolded;
  Inputs made;
  for (const onnx::ValueInfoProto& info : graph.input()) {
    const onnx::TypeProto* type = &info.type();
    UnfoldedInput input{.name = info.name()};
    if (type->has_optional_type()) {
      type = &type->optional_type().elem_type();
      const std::string present_name = absl::StrCat(input.name, ":present");
      const int64_t present = Take(dims, present_name).value_or(1);
      if (present != 0 && present != 1) {
        return absl::InvalidArgumentError(absl::StrCat("--dim ", present_name, "=", present,
                                                       ": an optional has an element (1) or not (0)"));
      }
      input.present = present == 1;
    }
    if (!input.present) {
      unfolded.push_back(std::move(input));
    } else if (type->has_sequence_type()) {
      RETURN_IF_ERROR(UnfoldSequence(type->sequence_type().elem_type(), dims, input, made));
      RETURN_IF_ERROR(CheckFree(graph, input));
      unfolded.push_back(std::move(input));
    } else {
      *made.Add() = info;
      *made.rbegin()->mutable_type() = *type;
    }
  }
  graph.mutable_input()->Swap(&made);
  return unfolded;
}

void NameUnfolded(const std::vector<UnfoldedInput>& inputs, Scope& scope) {
  for (const UnfoldedInput& input : inputs) {
    if (!input.present) {
      scope.Set(input.name, EmptyOptional());
      continue;
    }
    Sequence sequence{.dtype = input.dtype};
    for (const std::string& element : input.elements) {
      sequence.elements.push_back(std::get<Value*>(*scope.Find(element)));
    }
    scope.Set(input.name, std::move(sequence));
  }
}

}  // namespace pipec
