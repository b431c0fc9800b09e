#include "tests/bench/op_kinds.h"

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace pipec::bench {
namespace {

struct KindOfOp {
  const char* op;  // of pipec; of PyTorch if it begins with "aten::"
  const char* kind;
};

const KindOfOp kKinds[] = {
    {"Gemm", "product, attention"},
    {"MatMul", "product, attention"},
    {"FusedMatMul", "product, attention"},
    {"MatMulWeightGrad", "product, attention"},
    {"Softmax", "product, attention"},
    {"SoftmaxGrad", "product, attention"},
    {"FusedAttention", "product, attention"},
    {"FusedAttentionGrad", "product, attention"},
    {"Where", "product, attention"},
    {"aten::addmm", "product, attention"},
    {"aten::bmm", "product, attention"},
    {"aten::mm", "product, attention"},
    {"aten::_scaled_dot_product_flash_attention_for_cpu", "product, attention"},
    {"aten::_scaled_dot_product_flash_attention_for_cpu_backward", "product, attention"},
    {"Conv", "convolution"},
    {"aten::mkldnn_convolution", "convolution"},
    {"ConvInputGrad", "convolution gradients"},
    {"ConvWeightGrad", "convolution gradients"},
    {"aten::convolution_backward", "convolution gradients"},
    {"aten::mkldnn_convolution_backward", "convolution gradients"},
    {"LayerNormalization", "normalisation"},
    {"TrainingBatchNormalization", "normalisation"},
    {"RunningAverage", "normalisation"},
    {"aten::native_layer_norm", "normalisation"},
    {"aten::native_batch_norm", "normalisation"},
    {"LayerNormalizationInputGrad", "normalisation gradients"},
    {"LayerNormalizationWeightGrad", "normalisation gradients"},
    {"BatchNormalizationInputGrad", "normalisation gradients"},
    {"BatchNormalizationWeightGrad", "normalisation gradients"},
    {"aten::native_layer_norm_backward", "normalisation gradients"},
    {"aten::native_batch_norm_backward", "normalisation gradients"},
    {"Gelu", "activation"},
    {"GeluGrad", "activation"},
    {"Relu", "activation"},
    {"ReluGrad", "activation"},
    {"aten::gelu", "activation"},
    {"aten::gelu_backward", "activation"},
    {"aten::relu", "activation"},
    {"aten::clamp_min", "activation"},
    {"aten::threshold_backward", "activation"},
    {"MaxPool", "pooling"},
    {"MaxPoolGrad", "pooling"},
    {"GlobalAveragePool", "pooling"},
    {"aten::max_pool2d_with_indices", "pooling"},
    {"aten::max_pool2d_with_indices_backward", "pooling"},
    {"aten::mean", "pooling"},
    {"Add", "addition, scaling"},
    {"Mul", "addition, scaling"},
    {"aten::add", "addition, scaling"},
    {"aten::mul", "addition, scaling"},
    {"aten::div", "addition, scaling"},
    {"ReduceSum", "sum"},
    {"aten::sum", "sum"},
    {"Concat", "copy"},
    {"Expand", "copy"},
    {"Split", "copy"},
    {"Transpose", "copy"},
    {"aten::cat", "copy"},
    {"aten::copy_", "copy"},
    {"Gather", "embedding"},
    {"GatherGrad", "embedding"},
    {"aten::index_select", "embedding"},
    {"aten::embedding_dense_backward", "embedding"},
    {"SoftmaxCrossEntropy", "loss"},
    {"SoftmaxCrossEntropyGrad", "loss"},
    {"aten::_log_softmax", "loss"},
    {"aten::_log_softmax_backward_data", "loss"},
    {"aten::nll_loss_forward", "loss"},
    {"aten::nll_loss_backward", "loss"},
    {"Accumulate", "accumulation"},
    {"aten::add_", "accumulation"},
    {"Adam", "optimizer"},
    {"aten::_fused_adamw_", "optimizer"},
};

absl::string_view KindOf(absl::string_view op) {
  if (absl::StartsWith(op, "## Call CompiledFxGraph")) return "compiled loops";
  for (const KindOfOp& row : kKinds) {
    if (op == row.op) return row.kind;
  }
  return "other";
}

}  // namespace

OpSeconds ByKind(const OpSeconds& ops) {
  OpSeconds kinds;
  for (const auto& [op, seconds] : ops) kinds[std::string(KindOf(op))] += seconds;
  return kinds;
}

}  // namespace pipec::bench
