#include "compiler/onnx/schema/infer.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "compiler/onnx/read/tensor_data.h"
#include "compiler/onnx/read/tensor_limits.h"
#include "compiler/onnx/schema/inference_guards.h"
#include "compiler/onnx/schema/own_inference.h"
#include "compiler/onnx/schema/schema_context.h"
#include "compiler/ops/op_info.h"
#include "onnx/defs/data_type_utils.h"
#include "runtime/base/counted.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

// onnx names types by interned strings; one look-up per element type.
onnx::DataType Interned(DType dtype) {
  static const auto* const kTypes = [] {
    auto* types = new std::vector<onnx::DataType>(32, nullptr);
    for (int code = 1; code < 32; ++code) {
      if (SizeOf(static_cast<DType>(code)) == 0) continue;
      onnx::TypeProto type;
      type.mutable_tensor_type()->set_elem_type(code);
      (*types)[code] = onnx::Utils::DataTypeUtils::ToType(type);
    }
    return types;
  }();
  const size_t code = static_cast<size_t>(dtype);
  return code < kTypes->size() ? (*kTypes)[code] : nullptr;
}

const onnx::OpSchema* NewestSchema(absl::string_view op, absl::string_view domain) {
  return onnx::OpSchemaRegistry::Schema(std::string(op), std::string(domain));
}

// "Add (float32[2], int64[2])".
std::string Describe(const NodeSpec& spec) {
  return absl::StrCat(spec.op, " (",
                      absl::StrJoin(spec.inputs, ", ",
                                    [](std::string* out, const Value* input) {
                                      absl::StrAppend(out, input ? ToString(input->type) : "-");
                                    }),
                      ")");
}

// Number of operands, required ones present, element types allowed, and equal where the schema uses one type
// variable.
absl::Status CheckOperands(const NodeSpec& spec, const onnx::OpSchema& schema) {
  const int count = static_cast<int>(spec.inputs.size());
  if (count < schema.min_input() || count > schema.max_input()) {
    return absl::InvalidArgumentError(absl::StrCat(Describe(spec), " has ",
                                                   Counted(count, "operand", "operands"), ", wanted ",
                                                   schema.min_input(), " to ", schema.max_input()));
  }
  const auto& formals = schema.inputs();
  absl::InlinedVector<std::pair<const std::string*, DType>, 4> bound;
  for (int i = 0; i < count; ++i) {
    const auto& formal = formals[std::min<size_t>(i, formals.size() - 1)];
    const Value* input = spec.inputs[i];
    if (!input) {
      if (formal.GetOption() == onnx::OpSchema::Single) {
        return absl::InvalidArgumentError(
            absl::StrCat(Describe(spec), " lacks operand ", i, " (", formal.GetName(), ")"));
      }
      continue;
    }
    if (!formal.GetTypes().contains(Interned(input->type.dtype))) {
      return absl::InvalidArgumentError(absl::StrCat(Describe(spec), " does not take ",
                                                     Name(input->type.dtype), " as operand ", i, " (",
                                                     formal.GetName(), ")"));
    }
    if (formal.GetOption() == onnx::OpSchema::Variadic && !formal.GetIsHomogeneous()) continue;
    const std::string& variable = formal.GetTypeStr();
    auto it = std::find_if(bound.begin(), bound.end(), [&](const auto& b) { return *b.first == variable; });
    if (it == bound.end()) {
      bound.emplace_back(&variable, input->type.dtype);
    } else if (it->second != input->type.dtype) {
      return absl::InvalidArgumentError(absl::StrCat(Describe(spec), " wants operands of one type, got ",
                                                     Name(it->second), " and ", Name(input->type.dtype)));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<TensorType> FromProto(const onnx::TypeProto& proto, const NodeSpec& spec, int output) {
  if (!proto.has_tensor_type()) {
    return absl::UnimplementedError(
        absl::StrCat("result ", output, " of ", Describe(spec),
                     " is not a tensor (sequences and optionals are not supported)"));
  }
  TensorType type;
  type.dtype = DTypeOf(proto.tensor_type().elem_type());
  if (SizeOf(type.dtype) == 0) {
    return absl::UnimplementedError(
        absl::StrCat("result ", output, " of ", Describe(spec), " has element type ",
                     ElementTypeName(proto.tensor_type().elem_type()), ", which is not supported"));
  }
  if (!proto.tensor_type().has_shape()) {
    return absl::UnimplementedError(
        absl::StrCat("the shape of result ", output, " of ", Describe(spec), " depends on data"));
  }
  for (const auto& dim : proto.tensor_type().shape().dim()) {
    if (!dim.has_dim_value()) {
      return absl::UnimplementedError(absl::StrCat("dimension ", type.shape.size(), " of result ", output,
                                                   " of ", Describe(spec), " depends on data"));
    }
    type.shape.push_back(dim.dim_value());
  }
  return type;
}

// What onnx's own inference lets pass.
absl::Status CheckResults(const NodeSpec& spec, const std::vector<TensorType>& types) {
  for (int k = 0; k < types.size(); ++k) {
    if (absl::Status status = CheckTensorLimits(types[k]); !status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("result ", k, " of ", Describe(spec), " ", status.message()));
    }
  }
  if (spec.op == "Reshape" && !types.empty() && types[0].elements() != spec.inputs[0]->type.elements()) {
    return absl::InvalidArgumentError(
        absl::StrCat("reshape of ", ToString(spec.inputs[0]->type), " to ", ToString(types[0].shape), ": ",
                     spec.inputs[0]->type.elements(), " elements are not ", types[0].elements(),
                     " (is a batch or another dimension written into the shape?)"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<TensorType>> InferHelper(const NodeSpec& spec, int outputs) {
  const OpInfo* info = FindOp(spec.op, spec.domain);
  if (!info || !info->infer) {
    return absl::UnimplementedError(absl::StrCat("unknown helper op ", spec.domain, "::", spec.op));
  }
  NodeSpec asked = spec;
  asked.outputs.resize(outputs);
  ASSIGN_OR_RETURN(std::vector<TensorType> types, info->infer(asked));
  RETURN_IF_ERROR(CheckResults(spec, types));
  return types;
}

}  // namespace

absl::StatusOr<std::vector<TensorType>> InferTypes(const NodeSpec& spec, int outputs) {
  if (spec.domain == kPipecDomain) return InferHelper(spec, outputs);
  const onnx::OpSchema* schema = NewestSchema(spec.op, spec.domain);
  if (!schema || schema->deprecated()) {
    return absl::UnimplementedError(absl::StrCat("unknown op ", spec.op, " in domain '", spec.domain, "'"));
  }
  RETURN_IF_ERROR(CheckOperands(spec, *schema));
  RETURN_IF_ERROR(CheckBeforeInference(spec, outputs));
  ASSIGN_OR_RETURN(std::optional<std::vector<TensorType>> own, InferOurselves(spec));
  if (own) {
    RETURN_IF_ERROR(CheckResults(spec, *own));
    return *std::move(own);
  }
  SchemaContext context(spec, outputs);
  try {
    schema->GetTypeAndShapeInferenceFunction()(context);
  } catch (const std::exception& error) {
    // Several lines and a context that the caller adds anyhow: one line is enough.
    std::string words = absl::StrReplaceAll(error.what(), {{"\n", " "}});
    absl::StripAsciiWhitespace(&words);
    return absl::InvalidArgumentError(absl::StrCat(Describe(spec), " does not fit: ", words));
  }
  std::vector<TensorType> types;
  types.reserve(outputs);
  for (int k = 0; k < outputs; ++k) {
    ASSIGN_OR_RETURN(TensorType type, FromProto(*context.getOutputType(k), spec, k));
    types.push_back(std::move(type));
  }
  RETURN_IF_ERROR(CheckResults(spec, types));
  return types;
}

bool IsDeterministic(absl::string_view op, absl::string_view domain) {
  if (domain == kPipecDomain) return op != "Dropout" && op != "DropoutGrad";
  const onnx::OpSchema* schema = NewestSchema(op, domain);
  return schema && schema->GetNodeDeterminism() != onnx::OpSchema::NodeDeterminism::NonDeterministic;
}

}  // namespace pipec
