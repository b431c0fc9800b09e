#include "compiler/onnx/fold_shapes.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/onnx/schema/infer.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

constexpr int64_t kSmall = 64;

template <typename T>
std::string Bytes(absl::Span<const T> values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

// Which of the dimensions Shape gives, as ONNX clamps them.
std::pair<int64_t, int64_t> ShapeRange(const Node& node) {
  const int64_t rank = node.input(0)->type.shape.size();
  auto clamp = [&](int64_t axis) { return std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank); };
  const int64_t start = clamp(node.attributes.Int("start", 0));
  return {start, std::max(start, clamp(node.attributes.Int("end", rank)))};
}

std::string ShapeContents(const Node& node) {
  const auto [start, end] = ShapeRange(node);
  return Bytes<int64_t>(absl::MakeConstSpan(node.input(0)->type.shape).subspan(start, end - start));
}

// Whether the results, once folded, are made of the number of samples.
bool CountsSamples(const Node& node) {
  if (node.Is("Size")) return node.input(0)->batch_axis >= 0;
  if (node.Is("Shape")) {
    const auto [start, end] = ShapeRange(node);
    return start <= node.input(0)->batch_axis && node.input(0)->batch_axis < end;
  }
  return std::any_of(node.inputs().begin(), node.inputs().end(),
                     [](const Value* input) { return input && input->counts_samples; });
}

bool IsSmallConstant(const Value* value) {
  return !value ||
         (value->kind() == ValueKind::kConstant && value->data.bytes && value->type.elements() <= kSmall);
}

bool MayFold(const Node& node) {
  return std::all_of(node.inputs().begin(), node.inputs().end(), IsSmallConstant) &&
         std::all_of(node.outputs().begin(), node.outputs().end(),
                     [](const Value* output) { return !output || output->type.elements() <= kSmall; }) &&
         IsDeterministic(node.op(), node.domain());
}

}  // namespace

absl::StatusOr<Value*> AddConstantNode(Graph& graph, const NodeSpec& spec) {
  const Attributes& a = spec.attributes;
  for (const char* name : {"value", "sparse_value"}) {
    if (const TensorLiteral* tensor = a.Tensor(name))
      return graph.AddConstant(spec.name, tensor->type, *tensor->bytes);
  }
  if (a.Has("value_int")) {
    return graph.AddConstant(spec.name, {DType::kInt64, {}}, Bytes<int64_t>({a.Int("value_int")}));
  }
  if (a.Has("value_float")) {
    return graph.AddConstant(spec.name, {DType::kFloat32, {}}, Bytes<float>({a.Float("value_float")}));
  }
  if (a.Has("value_ints")) {
    const std::vector<int64_t> values = a.Ints("value_ints");
    return graph.AddConstant(spec.name, {DType::kInt64, {static_cast<int64_t>(values.size())}},
                             Bytes<int64_t>(values));
  }
  if (a.Has("value_floats")) {
    const std::vector<float> values = a.Floats("value_floats");
    return graph.AddConstant(spec.name, {DType::kFloat32, {static_cast<int64_t>(values.size())}},
                             Bytes<float>(values));
  }
  if (a.empty()) return absl::InvalidArgumentError("has no value");
  return absl::UnimplementedError(absl::StrCat("its value is ", a.begin()->first,
                                               ", which is not supported: a constant is a tensor of numbers, "
                                               "value, sparse_value, value_int(s) or value_float(s)"));
}

absl::Status FoldSmall(Graph& graph, Node* node, const decltype(ImportOptions::evaluate)& evaluate,
                       std::vector<Value*>& results) {
  std::vector<std::string> contents;
  if (node->Is("Shape")) {
    contents = {ShapeContents(*node)};
  } else if (node->Is("Size")) {
    contents = {Bytes<int64_t>({node->input(0)->type.elements()})};
  } else if (evaluate && MayFold(*node)) {
    std::vector<const std::string*> operands;
    for (const Value* input : node->inputs()) operands.push_back(input ? input->data.bytes.get() : nullptr);
    absl::StatusOr<std::vector<std::string>> evaluated = evaluate(*node, operands);
    if (absl::IsUnimplemented(evaluated.status())) return absl::OkStatus();
    if (!evaluated.ok()) return evaluated.status();
    contents = *std::move(evaluated);
  } else {
    return absl::OkStatus();
  }
  const bool counts_samples = CountsSamples(*node);
  std::vector<std::pair<std::string, TensorType>> made;
  for (const Value* output : node->outputs()) {
    if (output) {
      made.emplace_back(output->name(), output->type);
    } else {
      made.emplace_back();
    }
  }
  graph.Erase(node);
  for (int k = 0; k < made.size(); ++k) {
    const bool absent = made[k].second.dtype == DType::kUndefined;
    results[k] = absent ? nullptr : graph.AddConstant(made[k].first, made[k].second, std::move(contents[k]));
    if (results[k]) results[k]->counts_samples = counts_samples;
  }
  return absl::OkStatus();
}

}  // namespace pipec
