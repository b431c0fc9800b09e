#include "tests/support/float64.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/onnx/schema/infer.h"
#include "passes/evaluate.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

bool IsNarrow(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat16 || dtype == DType::kBFloat16;
}

template <typename T>
T Load(const std::string& bytes, int64_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}

double Element(DType dtype, const std::string& bytes, int64_t i) {
  if (dtype == DType::kFloat32) return Load<float>(bytes, i);
  const uint16_t bits = Load<uint16_t>(bytes, i);
  if (dtype == DType::kBFloat16) {
    const uint32_t wide = uint32_t{bits} << 16;
    float value;
    std::memcpy(&value, &wide, sizeof(value));
    return value;
  }
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == 31) return mantissa ? NAN : sign * INFINITY;
  return sign * std::ldexp(mantissa + (exponent ? 1024 : 0), std::max(exponent, 1) - 25);
}

std::string Widened(DType dtype, const std::string& bytes) {
  std::string wide;
  for (size_t i = 0; i < bytes.size() / SizeOf(dtype); ++i) {
    const double value = Element(dtype, bytes, static_cast<int64_t>(i));
    wide.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  return wide;
}

absl::Status Widen(Value& value) {
  if (value.kind() == ValueKind::kParameter || value.kind() == ValueKind::kConstant) {
    ASSIGN_OR_RETURN(const std::string bytes, ReadData(value));
    const DType stored = value.data.stored == DType::kUndefined ? value.type.dtype : value.data.stored;
    value.data = {};
    value.data.bytes = std::make_shared<const std::string>(Widened(stored, bytes));
    value.data.length = value.data.bytes->size();
  }
  value.type.dtype = DType::kFloat64;
  return absl::OkStatus();
}

// Attributes by which a node says the type of what it makes.
void WidenAttributes(Node& node) {
  Attributes& attributes = node.attributes;
  for (const char* name : {"to", "dtype", "output_dtype", "stash_type"}) {
    if (IsNarrow(static_cast<DType>(attributes.Int(name))))
      attributes.Set(name, static_cast<int64_t>(DType::kFloat64));
  }
  if (node.Is("LayerNormalization")) attributes.Set("stash_type", static_cast<int64_t>(DType::kFloat64));
  const TensorLiteral* literal = attributes.Tensor("value");
  if (!literal && node.Is("ConstantOfShape")) {
    attributes.Set("value",
                   TensorLiteral{{DType::kFloat64, {1}}, std::make_shared<const std::string>(8, '\0')});
  }
  if (!literal || !IsNarrow(literal->type.dtype)) return;
  TensorLiteral wide{{DType::kFloat64, literal->type.shape},
                     std::make_shared<const std::string>(Widened(literal->type.dtype, *literal->bytes))};
  attributes.Set("value", std::move(wide));
}

bool Fits(const Node& node) {
  NodeSpec spec{.op = node.op(), .domain = node.domain(), .attributes = node.attributes};
  spec.inputs.assign(node.inputs().begin(), node.inputs().end());
  const auto types = InferTypes(spec, static_cast<int>(node.outputs().size()));
  if (!types.ok()) return false;
  for (int k = 0; k < node.outputs().size(); ++k) {
    if (node.output(k) && node.output(k)->type.dtype != (*types)[k].dtype) return false;
  }
  return true;
}

}  // namespace

absl::Status WidenToFloat64(Graph& graph) {
  for (Value* value : graph.Values()) {
    if (!IsNarrow(value->type.dtype)) continue;
    // Sizes that a float says.
    const bool kept = value->kind() == ValueKind::kConstant &&
                      std::any_of(value->uses().begin(), value->uses().end(),
                                  [](const Use& use) { return use.node->Is("Resize") && use.index == 2; });
    if (!kept) RETURN_IF_ERROR(Widen(*value));
  }
  for (Node* node : graph.Nodes()) WidenAttributes(*node);
  for (const Node* node : graph.Nodes()) {
    if (!Fits(*node)) return absl::CancelledError(absl::StrCat(node->op(), " has no form in float64"));
  }
  return absl::OkStatus();
}

}  // namespace pipec
