#include "compiler/ops/mixing.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "compiler/ops/batch_axes.h"
#include "compiler/ops/op_info.h"

namespace pipec {
namespace {

// Mix samples wherever their rules find no batch axis for what they make of batched operands.
constexpr absl::string_view kMixing[] = {"ArgMax",
                                         "ArgMin",
                                         "Attention",
                                         "AveragePool",
                                         "Compress",
                                         "Conv",
                                         "ConvInteger",
                                         "ConvTranspose",
                                         "CumProd",
                                         "CumSum",
                                         "DFT",
                                         "Det",
                                         "DynamicQuantizeLinear",
                                         "Einsum",
                                         "FusedAttention",
                                         "FusedMatMul",
                                         "GRU",
                                         "Gemm",
                                         "GroupNormalization",
                                         "Hardmax",
                                         "InstanceNormalization",
                                         "LRN",
                                         "LSTM",
                                         "LayerNormalization",
                                         "LinearAttention",
                                         "LogSoftmax",
                                         "LpNormalization",
                                         "LpPool",
                                         "MatMul",
                                         "MatMulInteger",
                                         "MaxPool",
                                         "MeanVarianceNormalization",
                                         "QLinearConv",
                                         "QLinearMatMul",
                                         "RMSNormalization",
                                         "RNN",
                                         "ReverseSequence",
                                         "Slice",
                                         "Softmax",
                                         "Split",
                                         "TfIdfVectorizer",
                                         "TopK",
                                         "Trilu",
                                         "Unique"};

int FirstBatched(const Node& node) {
  for (size_t i = 0; i < node.inputs().size(); ++i) {
    if (node.input(i) && node.input(i)->batch_axis >= 0) return i;
  }
  return -1;
}

// Two operands whose samples lie along different axes of the result: every sample meets every other.
int MetByAnother(const Node& node) {
  const int rank = node.output(0)->type.shape.size();
  int first = -1, first_axis = -1;
  for (size_t i = 0; i < node.inputs().size(); ++i) {
    const Value* in = node.input(i);
    if (!in || in->batch_axis < 0) continue;
    const int axis = in->batch_axis + rank - static_cast<int>(in->type.shape.size());
    if (first >= 0 && axis != first_axis) return first;
    first = i;
    first_axis = axis;
  }
  return -1;
}

// Samples picked by number, or every sample's indices into every sample's data. Of an axis that several
// entries of a sample share ([B*T]) the indices may well be computed so that each sample reads its own.
int Gathered(const Node& node) {
  const Value *data = node.input(0), *indices = node.input(1);
  if (data->batch_axis < 0) return -1;
  const int64_t axis = NormalizeAxis(node.attributes.Int("axis", 0), data->type.shape.size());
  if (data->batch_axis != axis) return indices->batch_axis >= 0 ? 0 : -1;
  return data->type.shape[axis] == SamplesOf(node.graph()) ? 0 : -1;
}

}  // namespace

int MixedOperand(const Node& node) {
  const int batched = FirstBatched(node);
  if (batched < 0 || (!node.domain().empty() && !absl::StartsWith(node.op(), "Fused"))) return -1;
  if (node.Is("BatchNormalization")) return node.attributes.Int("training_mode") != 0 ? 0 : -1;
  if (node.Is("Gather")) return Gathered(node);
  if (node.output(0) && IsBroadcast(node.op(), node.domain())) return MetByAnother(node);
  const bool may_mix = absl::StartsWith(node.op(), "Reduce") || absl::StartsWith(node.op(), "Global") ||
                       std::find(std::begin(kMixing), std::end(kMixing), node.op()) != std::end(kMixing);
  if (!may_mix) return -1;
  for (size_t k = 0; k < node.outputs().size(); ++k) {
    if (node.output(k) && BatchAxisOf(node, k) >= 0) return -1;
  }
  return batched;
}

}  // namespace pipec
