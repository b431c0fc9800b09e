#include "compiler/onnx/batch/bind_dimensions.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler/onnx/read/tensor_data.h"
#include "compiler/onnx/read/tensor_limits.h"
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

// What decides the batch: the first input with a symbolic one, else the first with axes at all; null if there
// is none.
const Input* Decides(const std::vector<Input>& inputs, const Symbols& symbols) {
  const Input* decides = nullptr;
  for (const Input& input : inputs) {
    if (input.bound || input.shape->dim_size() == 0) continue;
    const bool symbolic = !input.shape->dim(0).has_dim_value() && symbols.batch.contains(Symbol(input, 0));
    if (!decides || symbolic) decides = &input;
    if (symbolic) break;
  }
  return decides;
}

// The samples of a microbatch, and a refusal if --dim and the wanted size disagree.
absl::StatusOr<int64_t> MicrobatchSize(const Input* decides, const ImportOptions& options) {
  const int64_t wanted = options.microbatch_size;
  if (!decides) return std::max<int64_t>(wanted, 1);
  const auto& dim = decides->shape->dim(0);
  if (dim.has_dim_value()) return wanted > 0 ? wanted : dim.dim_value();
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

// What the batch is and which axes it is on.
struct Batch {
  int64_t samples = 1;
  int64_t written = 0;
  std::string symbol;  // of the input that decides; "" if it has a number
  bool decided = false;

  bool IsOn(const Input& input, const Symbols& symbols, const ImportOptions& options) const {
    if (input.bound || !decided || input.shape->dim_size() == 0) return false;
    const auto& dim = input.shape->dim(0);
    if (dim.has_dim_value()) return written > 0 && dim.dim_value() == written;
    const std::string other = Symbol(input, 0);
    // Another symbol that --dim binds is no batch, be it as large as one.
    return other == symbol || (symbols.batch.contains(other) && !options.dims.contains(other));
  }
};

// A dimension that nothing binds; one that is the batch elsewhere is named as such.
absl::Status Unbound(const std::vector<Input>& inputs, const Input& input, int axis,
                     const std::string& symbol) {
  std::string message = absl::StrCat("input '", input.info->name(), "', axis ", axis, ": dimension '", symbol,
                                     "' has no value; bind it with --dim ", symbol, "=N");
  for (const Input& other : inputs) {
    for (int k = 0; k < other.shape->dim_size(); ++k) {
      if ((k == 0) == (axis == 0) || other.shape->dim(k).has_dim_value() || Symbol(other, k) != symbol)
        continue;
      return absl::InvalidArgumentError(
          absl::StrCat(message, "; if it is the batch: that must be axis 0 of every input, but '", symbol,
                       "' is also axis ", k, " of input '", other.info->name(),
                       "', so export the model with the batch in front"));
    }
  }
  return absl::InvalidArgumentError(message);
}

// Dimensions of what a decoder remembers: past... on inputs past... alone.
std::set<std::string> PastSymbols(const std::vector<Input>& inputs) {
  std::set<std::string> past, elsewhere;
  for (const Input& input : inputs) {
    for (int axis = 0; axis < input.shape->dim_size(); ++axis) {
      if (input.shape->dim(axis).has_dim_value()) continue;
      const std::string symbol = Symbol(input, axis);
      const bool remembered =
          absl::StartsWith(input.info->name(), "past") && absl::StartsWith(symbol, "past");
      (remembered ? past : elsewhere).insert(symbol);
    }
  }
  for (const std::string& symbol : elsewhere) past.erase(symbol);
  return past;
}

// The number that a dimension without one is bound to.
std::optional<int64_t> SizeOfSymbol(const std::string& symbol, const std::set<std::string>& past,
                                    const ImportOptions& options) {
  if (auto it = options.dims.find(symbol); it != options.dims.end()) return it->second;
  if (past.contains(symbol)) return 0;
  const std::vector<std::string> parts = absl::StrSplit(symbol, absl::MaxSplits(" + ", 1));
  if (parts.size() < 2) return std::nullopt;
  const std::optional<int64_t> left = SizeOfSymbol(parts[0], past, options),
                               right = SizeOfSymbol(parts[1], past, options);
  if (!left || !right) return std::nullopt;
  return *left + *right;
}

absl::Status CheckDims(const Symbols& symbols, const std::set<std::string>& past,
                       const ImportOptions& options) {
  for (const auto& [name, value] : options.dims) {
    if (value < (past.contains(name) ? 0 : 1))
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
                                           const ImportOptions& options, int64_t samples,
                                           const absl::flat_hash_set<std::string>& shared) {
  ASSIGN_OR_RETURN(const std::vector<Input> inputs, DataInputs(graph, initializers, options));
  const Symbols symbols = CollectSymbols(inputs);
  const std::set<std::string> past = PastSymbols(inputs);
  RETURN_IF_ERROR(CheckDims(symbols, past, options));
  BoundInputs result;
  const Input* decides = Decides(inputs, symbols);
  Batch batch{.samples = samples, .decided = decides != nullptr};
  if (samples == 0) {
    ASSIGN_OR_RETURN(batch.samples, MicrobatchSize(decides, options));
  }
  if (decides && decides->shape->dim(0).has_dim_value()) batch.written = decides->shape->dim(0).dim_value();
  if (decides && batch.written == 0 && !decides->shape->dim(0).has_dim_value())
    batch.symbol = Symbol(*decides, 0);
  result.microbatch_size = std::max<int64_t>(1, batch.samples);
  result.written = batch.written;
  for (const Input& input : inputs) {
    BoundInput bound{.name = input.info->name()};
    bound.type.dtype = DTypeOf(input.info->type().tensor_type().elem_type());
    if (SizeOf(bound.type.dtype) == 0) {
      return absl::UnimplementedError(absl::StrCat(
          "input '", bound.name, "' has element type ",
          ElementTypeName(input.info->type().tensor_type().elem_type()), ", which is not supported"));
    }
    // An input without elements has no samples to count.
    bound.batched = batch.samples > 0 && !shared.contains(bound.name) && batch.IsOn(input, symbols, options);
    if (bound.batched && batch.written > 0 && &input != decides) result.alike.push_back(bound.name);
    for (int axis = 0; axis < input.shape->dim_size(); ++axis) {
      const auto& dim = input.shape->dim(axis);
      const std::string symbol = dim.has_dim_value() ? "" : Symbol(input, axis);
      int64_t size = bound.batched && axis == 0 ? batch.samples : dim.dim_value();
      if (!dim.has_dim_value() && !(bound.batched && axis == 0)) {
        if (const std::optional<int64_t> known = SizeOfSymbol(symbol, past, options)) {
          size = *known;
          bound.is_past |= size == 0 && past.contains(symbol);
        } else if (axis == 0 && symbols.batch.contains(symbol)) {
          size = batch.samples;
        } else {
          return Unbound(inputs, input, axis, symbol);
        }
      }
      bound.type.shape.push_back(size);
    }
    if (absl::Status status = CheckTensorLimits(bound.type); !status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("input '", bound.name, "' ", status.message()));
    }
    result.inputs.push_back(std::move(bound));
  }
  return result;
}

}  // namespace pipec
