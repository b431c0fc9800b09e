#include "compiler/onnx/batch/reduced_samples.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/small_floats.h"

namespace pipec {
namespace {

constexpr int kMostMade = 3;  // nodes in a row that a rule of normalize*.cc makes, not seen by Place

template <typename T>
double First(const std::string& bytes) {
  T number;
  std::memcpy(&number, bytes.data(), sizeof(number));
  return static_cast<double>(number);
}

// The value of one element in memory.
std::optional<double> Number(const Value& value) {
  if (value.type.elements() != 1 || !value.data.bytes) return std::nullopt;
  const std::string& bytes = *value.data.bytes;
  switch (value.type.dtype) {
    case DType::kFloat32:
      return First<float>(bytes);
    case DType::kFloat64:
      return First<double>(bytes);
    case DType::kInt64:
      return First<int64_t>(bytes);
    case DType::kInt32:
      return First<int32_t>(bytes);
    case DType::kFloat16:
    case DType::kBFloat16: {
      std::vector<float> wide;
      ToFloats(value.type.dtype, bytes, wide);
      return wide.front();
    }
    default:
      return std::nullopt;
  }
}

template <typename T>
std::string Bytes(double number) {
  const T narrow = static_cast<T>(number);
  return std::string(reinterpret_cast<const char*>(&narrow), sizeof(narrow));
}

// n, if `number` is n or 1/n as near as a float is; 0 if it is neither.
int64_t Counts(double number) {
  if (!(number > 0) || number > 1e15) return 0;
  const double n = number < 1 ? 1 / number : number;
  const double whole = std::round(n);
  return std::abs(n - whole) <= (number < 1 ? 1e-6 * n : 0) ? static_cast<int64_t>(whole) : 0;
}

bool IsMean(const Node& node) {
  return node.Is("ReduceMean") || (node.domain().empty() && absl::EndsWith(node.op(), "Loss") &&
                                   node.attributes.String("reduction", "mean") == "mean");
}

}  // namespace

bool ReducesAll(absl::string_view op, absl::string_view domain) {
  if (!domain.empty()) {
    return op == "SoftmaxCrossEntropy" || op == "NegativeLogLikelihood" || op == "MeanSquaredError" ||
           op == "BinaryCrossEntropyWithLogits";
  }
  return absl::StartsWith(op, "Reduce") || absl::EndsWith(op, "Loss") || op == "MatMul" || op == "Gemm" ||
         op == "Einsum";
}

void ReducedSamples::Place(const Node& node, int64_t samples) {
  if (node.outputs().empty() || !node.output(0) || node.output(0)->batch_axis >= 0) return;
  const Value* data = nullptr;
  const Reduced* before = nullptr;
  for (const Value* input : node.inputs()) {
    if (!input) continue;
    if (!data && input->batch_axis >= 0) data = input;
    if (auto it = reduced_.find(input); !before && it != reduced_.end()) before = &it->second;
    if (before && !data && absl::StartsWith(node.op(), "Reduce")) data = input;
  }
  if (!data && !before) return;
  if (!before && !ReducesAll(node.op(), node.domain())) return;
  Reduced reduced = before ? *before : Reduced{.entries = 1, .mean = true};
  if (data && ReducesAll(node.op(), node.domain())) {
    const int64_t out = std::max<int64_t>(1, node.output(0)->type.elements());
    const int64_t per = before ? 1 : std::max<int64_t>(1, samples);
    reduced.entries *= std::max<int64_t>(1, data->type.elements() / out / per);
    reduced.mean &= IsMean(node);
  }
  for (const Value* output : node.outputs()) {
    if (output && output->batch_axis < 0) reduced_[output] = reduced;
  }
}

void ReducedSamples::Look(const Value& value, int64_t samples, int depth) {
  const Node* node = value.producer();
  if (!node || value.batch_axis >= 0 || depth == 0 || reduced_.contains(&value)) return;
  for (const Value* input : node->inputs()) {
    if (input) Look(*input, samples, depth - 1);
  }
  Place(*node, samples);
}

absl::StatusOr<std::optional<double>> ReducedSamples::Rescaled(const NodeSpec& spec, int i, int64_t exported,
                                                               int64_t samples) {
  Look(*spec.inputs[1 - i], samples, kMostMade);
  const auto it = reduced_.find(spec.inputs[1 - i]);
  const std::optional<double> number = Number(*spec.inputs[i]);
  if (it == reduced_.end() || !number) return std::nullopt;
  const auto [entries, mean] = it->second;
  const int64_t n = Counts(*number), all = exported * entries;
  // A factor of 1 says nothing, except where a sum is divided by it: that is 1 sample, or 2 less 1.
  if (n < 1 || (n == 1 && (mean || exported > 2 || spec.op != "Div"))) return std::nullopt;
  const bool exact = n == exported || n == all;
  const bool less_one = n == exported - 1 || n == all - 1;
  if (!exact && !less_one && (mean || exported == 1 || n % exported != 0)) return std::nullopt;
  // A half may be a half, and one sample's entries may be its entries.
  const bool sure =
      exact && !mean && spec.op == "Div" && i == 1 && *number >= 1 && n != 2 && (exported > 1 || n == 1);
  if (sure) return *number / exported * samples;
  return absl::InvalidArgumentError(absl::StrCat(
      "its operand ", i, ", the number ", *number, ", may count the samples of the batch of ", exported,
      " that the model is written for, as '", spec.inputs[1 - i]->name(), "' is a ", mean ? "mean" : "sum",
      " over them, and what it would be for the ", samples, " sample(s) of a microbatch cannot be told"));
}

Value* AddNumberLike(Graph& graph, const Value& like, double number) {
  std::string bytes;
  if (like.type.dtype == DType::kFloat32) bytes = Bytes<float>(number);
  if (like.type.dtype == DType::kFloat64) bytes = Bytes<double>(number);
  if (like.type.dtype == DType::kInt64) bytes = Bytes<int64_t>(number);
  if (like.type.dtype == DType::kInt32) bytes = Bytes<int32_t>(number);
  if (bytes.empty()) return nullptr;
  return graph.AddConstant(absl::StrCat(like.name(), "/samples"), like.type, std::move(bytes));
}

}  // namespace pipec
