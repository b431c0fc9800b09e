#include "compiler/onnx/bind_dimensions.h"

#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

struct Input {
  const onnx::ValueInfoProto* info;
  const onnx::TensorShapeProto* shape;
  bool bound;  // --input makes it a constant
};

// The name of a dimension without a number.
std::string Symbol(const Input& input, int axis) {
  const auto& dim = input.shape->dim(axis);
  return dim.dim_param().empty() ? absl::StrCat(input.info->name(), ":", axis) : dim.dim_param();
}

absl::StatusOr<std::vector<Input>> DataInputs(const onnx::GraphProto& graph,
                                              const absl::flat_hash_set<std::string>& initializers,
                                              const ImportOptions& options) {
  std::vector<Input> inputs;
  for (const auto& info : graph.input()) {
    if (initializers.contains(info.name())) continue;
    if (!info.type().has_tensor_type()) {
      return absl::UnimplementedError(absl::StrCat("input '", info.name(), "' is not a tensor"));
    }
    if (!info.type().tensor_type().has_shape()) {
      return absl::InvalidArgumentError(
          absl::StrCat("input '", info.name(), "' has no shape, not even its number of axes"));
    }
    inputs.push_back({&info, &info.type().tensor_type().shape(), options.bound_inputs.contains(info.name())});
  }
  for (const auto& [name, what] : options.bound_inputs) {
    bool found = false;
    for (const Input& input : inputs) found |= input.info->name() == name;
    if (!found) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--input ", name, "=", what, ": the model has no such input; it has ",
          absl::StrJoin(inputs, ", ",
                        [](std::string* out, const Input& i) { absl::StrAppend(out, i.info->name()); })));
    }
  }
  return inputs;
}

struct Symbols {
  std::set<std::string> all;
  std::set<std::string> batch;
};

Symbols CollectSymbols(const std::vector<Input>& inputs) {
  Symbols symbols;
  std::set<std::string> elsewhere;
  for (const Input& input : inputs) {
    for (int axis = 0; axis < input.shape->dim_size(); ++axis) {
      if (input.shape->dim(axis).has_dim_value()) continue;
      const std::string symbol = Symbol(input, axis);
      symbols.all.insert(symbol);
      (axis == 0 ? symbols.batch : elsewhere).insert(symbol);
    }
  }
  for (const std::string& symbol : elsewhere) symbols.batch.erase(symbol);
  return symbols;
}

// The samples of a microbatch, and a refusal if model, --dim and the wanted size disagree.
absl::StatusOr<int64_t> MicrobatchSize(const std::vector<Input>& inputs, const Symbols& symbols,
                                       const ImportOptions& options) {
  // The input that decides: the first with a symbolic batch, else the first with axes at all.
  const Input* decides = nullptr;
  for (const Input& input : inputs) {
    if (input.bound || input.shape->dim_size() == 0) continue;
    const bool symbolic = !input.shape->dim(0).has_dim_value() && symbols.batch.contains(Symbol(input, 0));
    if (!decides || symbolic) decides = &input;
    if (symbolic) break;
  }
  const int64_t wanted = options.microbatch_size;
  if (!decides) return std::max<int64_t>(wanted, 1);
  const auto& dim = decides->shape->dim(0);
  if (dim.has_dim_value()) {
    if (wanted != 0 && wanted != dim.dim_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat("input '", decides->info->name(), "' has ", dim.dim_value(),
                       " samples written into the model, but a microbatch of ", wanted,
                       " is asked for; choose --batch so that a microbatch is ", dim.dim_value(),
                       ", or export the model with a symbolic batch"));
    }
    return dim.dim_value();
  }
  const std::string symbol = Symbol(*decides, 0);
  auto it = options.dims.find(symbol);
  if (it == options.dims.end()) return std::max<int64_t>(wanted, 1);
  if (wanted != 0 && wanted != it->second) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--dim ", symbol, "=", it->second, " binds the batch axis of input '", decides->info->name(),
        "', but a microbatch of ", wanted, " is asked for; leave out --dim ", symbol));
  }
  return it->second;
}

absl::Status CheckDims(const Symbols& symbols, const ImportOptions& options) {
  for (const auto& [name, value] : options.dims) {
    if (value < 1)
      return absl::InvalidArgumentError(absl::StrCat("--dim ", name, "=", value, ": wanted at least 1"));
    if (symbols.all.contains(name)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "--dim ", name, "=", value, ": the model's inputs have no dimension of that name; they have ",
        symbols.all.empty() ? "numbers only" : absl::StrJoin(symbols.all, ", ")));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<BoundInputs> BindDimensions(const onnx::GraphProto& graph,
                                           const absl::flat_hash_set<std::string>& initializers,
                                           const ImportOptions& options) {
  ASSIGN_OR_RETURN(const std::vector<Input> inputs, DataInputs(graph, initializers, options));
  const Symbols symbols = CollectSymbols(inputs);
  RETURN_IF_ERROR(CheckDims(symbols, options));
  BoundInputs result;
  ASSIGN_OR_RETURN(result.microbatch_size, MicrobatchSize(inputs, symbols, options));
  for (const Input& input : inputs) {
    BoundInput bound{.name = input.info->name()};
    bound.type.dtype = static_cast<DType>(input.info->type().tensor_type().elem_type());
    if (SizeOf(bound.type.dtype) == 0) {
      return absl::UnimplementedError(absl::StrCat("input '", bound.name, "' has element type ",
                                                   input.info->type().tensor_type().elem_type(),
                                                   ", which is not supported"));
    }
    for (int axis = 0; axis < input.shape->dim_size(); ++axis) {
      const auto& dim = input.shape->dim(axis);
      const std::string symbol = dim.has_dim_value() ? "" : Symbol(input, axis);
      int64_t size = dim.dim_value();
      if (!dim.has_dim_value()) {
        if (auto it = options.dims.find(symbol); it != options.dims.end()) {
          size = it->second;
        } else if (axis == 0 && symbols.batch.contains(symbol)) {
          size = result.microbatch_size;
        } else {
          return absl::InvalidArgumentError(
              absl::StrCat("input '", bound.name, "', axis ", axis, ": dimension '", symbol,
                           "' has no value; bind it with --dim ", symbol, "=N"));
        }
      }
      if (size < 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("input '", bound.name, "', axis ", axis, ": negative dimension ", size));
      }
      bound.type.shape.push_back(size);
    }
    // An input without elements has no samples to count.
    bound.batched = result.microbatch_size > 0 && !bound.type.shape.empty() &&
                    bound.type.shape[0] == result.microbatch_size;
    result.inputs.push_back(std::move(bound));
  }
  return result;
}

}  // namespace pipec
