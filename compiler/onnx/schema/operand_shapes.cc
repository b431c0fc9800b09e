#include "compiler/onnx/schema/operand_shapes.h"

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "compiler/ops/batch_axes.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

const Value* Operand(const NodeSpec& spec, int k) {
  return k < static_cast<int>(spec.inputs.size()) ? spec.inputs[k] : nullptr;
}

const Shape& ShapeOf(const NodeSpec& spec, int k) { return Operand(spec, k)->type.shape; }

int RankOf(const NodeSpec& spec, int k) { return Operand(spec, k) ? ShapeOf(spec, k).size() : 0; }

std::string Says(const NodeSpec& spec, int k, absl::string_view name) {
  return absl::StrCat(name, ", operand ", k, ", is ", ToString(Operand(spec, k)->type));
}

// One for each of `what`, however they are laid out.
absl::Status WantElements(const NodeSpec& spec, int k, absl::string_view name, int64_t count,
                          absl::string_view what) {
  if (!Operand(spec, k) || Operand(spec, k)->type.elements() == count) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(Says(spec, k, name), ", wanted ", count,
                                                 " element(s): one for each ", what, " of ",
                                                 ToString(Operand(spec, 0)->type)));
}

absl::Status WantShape(const NodeSpec& spec, int k, absl::string_view name, const Shape& wanted) {
  if (!Operand(spec, k) || ShapeOf(spec, k) == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(Says(spec, k, name), ", wanted ", ToString(wanted),
                                                 " for X ", ToString(Operand(spec, 0)->type)));
}

// Broadcast in one direction: the result keeps its shape.
absl::Status WantBroadcast(const NodeSpec& spec, int k, absl::string_view name, const Shape& result) {
  if (!Operand(spec, k)) return absl::OkStatus();
  const Shape& shape = ShapeOf(spec, k);
  bool fits = shape.size() <= result.size();
  for (size_t i = 0; fits && i < shape.size(); ++i) {
    fits = shape[i] == 1 || shape[i] == result[result.size() - shape.size() + i];
  }
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(Says(spec, k, name), ", which does not broadcast to ", ToString(result)));
}

absl::Status OfGemm(const NodeSpec& spec) {
  if (RankOf(spec, 0) != 2 || RankOf(spec, 1) != 2) return absl::OkStatus();
  const int64_t rows = ShapeOf(spec, 0)[spec.attributes.Int("transA", 0) ? 1 : 0];
  const int64_t columns = ShapeOf(spec, 1)[spec.attributes.Int("transB", 0) ? 0 : 1];
  return WantBroadcast(spec, 2, "C", {rows, columns});
}

absl::Status OfPRelu(const NodeSpec& spec) {
  return Operand(spec, 0) ? WantBroadcast(spec, 1, "slope", ShapeOf(spec, 0)) : absl::OkStatus();
}

// Scale, bias, and the statistics of a batch normalization.
absl::Status OfChannels(const NodeSpec& spec) {
  if (!Operand(spec, 0)) return absl::OkStatus();
  const int64_t channels = RankOf(spec, 0) > 1 ? ShapeOf(spec, 0)[1] : 1;
  constexpr absl::string_view kNames[] = {"scale", "bias", "mean", "variance"};
  for (int k = 1; k < static_cast<int>(spec.inputs.size()) && k <= 4; ++k) {
    RETURN_IF_ERROR(WantElements(spec, k, kNames[k - 1], channels, "channel"));
  }
  return absl::OkStatus();
}

absl::Status OfLayerNormalization(const NodeSpec& spec) {
  const int rank = RankOf(spec, 0);
  const int64_t axis = NormalizeAxis(spec.attributes.Int("axis", -1), rank);
  if (axis < 0 || axis >= rank) return absl::OkStatus();
  const int64_t length = NumElements(absl::MakeSpan(ShapeOf(spec, 0)).subspan(axis));
  RETURN_IF_ERROR(WantElements(spec, 1, "scale", length, absl::StrCat("element from axis ", axis, " on")));
  return WantElements(spec, 2, "bias", length, absl::StrCat("element from axis ", axis, " on"));
}

template <int kWeights, int kBias>
absl::Status OfConvolution(const NodeSpec& spec) {
  if (RankOf(spec, kWeights) < 2) return absl::OkStatus();
  const Shape& weights = ShapeOf(spec, kWeights);
  const int64_t channels =
      spec.op == "ConvTranspose" ? weights[1] * spec.attributes.Int("group", 1) : weights[0];
  if (!Operand(spec, kBias) || Operand(spec, kBias)->type.elements() == channels) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(Says(spec, kBias, "bias"), ", wanted ", channels,
                                                 " element(s) for weights ",
                                                 ToString(Operand(spec, kWeights)->type)));
}

// (X, W, R, B?, sequence_lens?, initial_h?, initial_c?, P?), whose weights CheckBeforeInference looked at.
absl::Status OfRecurrent(const NodeSpec& spec) {
  if (RankOf(spec, 0) != 3 || RankOf(spec, 1) != 3 || RankOf(spec, 2) != 3) return absl::OkStatus();
  const bool batch_first = spec.attributes.Int("layout", 0) == 1;
  const int64_t batch = ShapeOf(spec, 0)[batch_first ? 0 : 1];
  const int64_t directions = ShapeOf(spec, 2)[0], rows = ShapeOf(spec, 2)[1], hidden = ShapeOf(spec, 2)[2];
  const Shape state = batch_first ? Shape{batch, directions, hidden} : Shape{directions, batch, hidden};
  RETURN_IF_ERROR(WantShape(spec, 1, "W", {directions, rows, ShapeOf(spec, 0)[2]}));
  RETURN_IF_ERROR(WantShape(spec, 3, "B", {directions, 2 * rows}));
  RETURN_IF_ERROR(WantShape(spec, 4, "sequence_lens", {batch}));
  RETURN_IF_ERROR(WantShape(spec, 5, "initial_h", state));
  RETURN_IF_ERROR(WantShape(spec, 6, "initial_c", state));
  return WantShape(spec, 7, "P", {directions, 3 * hidden});
}

using Check = absl::Status (*)(const NodeSpec&);

}  // namespace

absl::Status CheckOperandShapes(const NodeSpec& spec) {
  static const auto* const kChecks = new absl::flat_hash_map<absl::string_view, Check>{
      {"Gemm", OfGemm},
      {"PRelu", OfPRelu},
      {"BatchNormalization", OfChannels},
      {"InstanceNormalization", OfChannels},
      {"LayerNormalization", OfLayerNormalization},
      {"Conv", OfConvolution<1, 2>},
      {"ConvTranspose", OfConvolution<1, 2>},
      {"DeformConv", OfConvolution<1, 3>},
      {"QLinearConv", OfConvolution<3, 8>},
      {"RNN", OfRecurrent},
      {"GRU", OfRecurrent},
      {"LSTM", OfRecurrent},
  };
  const auto it = kChecks->find(spec.op);
  return spec.domain.empty() && it != kChecks->end() ? it->second(spec) : absl::OkStatus();
}

}  // namespace pipec
