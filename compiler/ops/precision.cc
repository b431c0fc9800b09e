// The lists follow PyTorch's (torch.amp, "CUDA Ops that autocast to float16" and "to float32"), op by op.
#include "compiler/ops/precision.h"

#include "absl/container/flat_hash_map.h"
#include "compiler/ir/graph.h"

namespace pipec {
namespace {

constexpr absl::string_view kSmallOps[] = {
    "MatMul", "Gemm", "Einsum", "Conv",      "ConvTranspose",   "DeformConv",
    "RNN",    "GRU",  "LSTM",   "Attention", "LinearAttention",
};

constexpr absl::string_view kFloat32Ops[] = {
    // element by element
    "Acos",
    "Acosh",
    "Asin",
    "Atanh",
    "Cosh",
    "Exp",
    "Log",
    "Pow",
    "Reciprocal",
    "Sinh",
    "Softplus",
    "Tan",
    // sums and products of many
    "CumProd",
    "CumSum",
    "Det",
    "GlobalLpPool",
    "LogSoftmax",
    "LpPool",
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMean",
    "ReduceProd",
    "ReduceSum",
    "ReduceSumSquare",
    // losses
    "NegativeLogLikelihoodLoss",
    "SoftmaxCrossEntropyLoss",
    // places, in the type of what is read there
    "AffineGrid",
    "GridSample",
    "RoiAlign",
    // exact steps and frequencies
    "DFT",
    "STFT",
    "QuantizeLinear",
    "DynamicQuantizeLinear",
};

constexpr absl::string_view kNormOps[] = {
    "BatchNormalization", "GroupNormalization",        "InstanceNormalization",
    "LayerNormalization", "LpNormalization",           "LRN",
    "RMSNormalization",   "MeanVarianceNormalization", "Softmax",
};

constexpr absl::string_view kSmallHelpers[] = {"FusedAttention", "FusedMatMul"};
constexpr absl::string_view kFloat32Helpers[] = {
    "Accumulate",     "BinaryCrossEntropyWithLogits", "MeanSquaredError", "NegativeLogLikelihood",
    "RunningAverage", "SoftmaxCrossEntropy",
};
constexpr absl::string_view kNormHelpers[] = {"TrainingBatchNormalization"};

using Classes = absl::flat_hash_map<absl::string_view, PrecisionClass>;

Classes ClassesOf(absl::Span<const absl::string_view> small, absl::Span<const absl::string_view> float32,
                  absl::Span<const absl::string_view> norm) {
  Classes classes;
  for (absl::string_view op : small) classes[op] = PrecisionClass::kSmall;
  for (absl::string_view op : float32) classes[op] = PrecisionClass::kFloat32;
  for (absl::string_view op : norm) classes[op] = PrecisionClass::kNorm;
  return classes;
}

}  // namespace

PrecisionClass PrecisionClassOf(absl::string_view op, absl::string_view domain) {
  static const auto* const kOnnx = new Classes(ClassesOf(kSmallOps, kFloat32Ops, kNormOps));
  static const auto* const kHelpers = new Classes(ClassesOf(kSmallHelpers, kFloat32Helpers, kNormHelpers));
  const Classes& classes = domain == kPipecDomain ? *kHelpers : *kOnnx;
  auto it = classes.find(op);
  return it == classes.end() ? PrecisionClass::kFollow : it->second;
}

}  // namespace pipec
