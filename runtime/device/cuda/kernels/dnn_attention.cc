// The operations and their order are those that cuDNN's engines for attention know (the developer guide's "Fused
// Flash Attention fprop", and how NVIDIA's cudnn-frontend 1.x composes them for versions before 9.21): P = softmax of
// the scaled, masked scores in float32, rounded to the operands' type, times V; beside it each row's statistic, the
// logarithm of its sum of exponentials. Causal rows keep columns whose index is not above their own.
//
// The gradient is not cuDNN's. Its kernel either adds to dQ in whatever order threads come, so that no two runs are
// alike, or, on sm_90 before 9.25, keeps all of dP: heads * rows * columns elements.
#include "runtime/device/cuda/kernels/dnn_attention.h"

#include <cudnn.h>

#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cuda/cuda_stream.h"
#include "runtime/device/cuda/kernels/dnn_graph.h"
#include "runtime/device/operands/check.h"

namespace pipec::cuda {
namespace {

using Tensor = DnnGraph::Tensor;
using Kind = DnnGraph::Kind;
using Axes = DnnGraph::Axes;

constexpr int64_t kAlignment = 256;  // of cuDNN's workspace
constexpr int64_t kWide = 16;        // of its operands

// Why cuDNN is not asked; "" if it is.
std::string WhyNot(const Attention& a) {
  if (a.dtype != DType::kFloat16 && a.dtype != DType::kBFloat16) return "is not of 16-bit floats";
  if (a.depth % 8 != 0 || a.width % 8 != 0) return "has rows that are no multiples of 16 bytes";
  if (a.mask == Attention::Mask::kNone) return "";
  if (a.mask == Attention::Mask::kChosen) return "has a mask of bools";
  if (a.zero_rows) return "gives zeros for rows that its mask hides";
  if (a.heads.size() > 2 || a.mask_column_step != 1) return "has a mask of another form";
  return "";
}

class DnnAttention : public Kernel {
 public:
  DnnAttention(const Attention& a, bool has_logs, cudnnHandle_t dnn)
      : a_(a), has_logs_(has_logs), dnn_(dnn) {}

  absl::Status Prepare() {
    const int64_t heads = a_.heads.empty() ? 1 : a_.heads.back(), batch = a_.head_count() / heads;
    const cudnnDataType_t type = a_.dtype == DType::kFloat16 ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16;
    const Axes q = DnnGraph::Packed({batch, heads, a_.rows, a_.depth}),
               v = DnnGraph::Packed({batch, heads, a_.columns, a_.width}),
               o = DnnGraph::Packed({batch, heads, a_.rows, a_.width}),
               weights = DnnGraph::Packed({batch, heads, a_.rows, a_.columns}),
               statistics = DnnGraph::Packed({batch, heads, a_.rows, 1});
    Axes k = DnnGraph::Packed({batch, heads, a_.columns, a_.depth});  // as its transpose
    std::swap(k.dims[2], k.dims[3]);
    std::swap(k.steps[2], k.steps[3]);
    ASSIGN_OR_RETURN(q_, graph_.Add(Kind::kOperand, type, q));
    ASSIGN_OR_RETURN(k_, graph_.Add(Kind::kOperand, type, k));
    ASSIGN_OR_RETURN(v_, graph_.Add(Kind::kOperand, type, v));
    ASSIGN_OR_RETURN(o_, graph_.Add(Kind::kOperand, type, o));
    ASSIGN_OR_RETURN(logs_, graph_.Add(Kind::kOperand, CUDNN_DATA_FLOAT, statistics));
    const auto between = [&](const Axes& axes, cudnnDataType_t of = CUDNN_DATA_FLOAT) {
      return graph_.Add(Kind::kVirtual, of, axes);
    };
    ASSIGN_OR_RETURN(const Tensor products, between(weights));
    RETURN_IF_ERROR(graph_.Multiply(q_, k_, products));
    ASSIGN_OR_RETURN(scale_, graph_.Add(Kind::kScalar, CUDNN_DATA_FLOAT, DnnGraph::Packed({1, 1, 1, 1})));
    ASSIGN_OR_RETURN(Tensor scores, between(weights));
    RETURN_IF_ERROR(Apply(CUDNN_POINTWISE_MUL, {products, scale_}, scores));
    if (a_.mask == Attention::Mask::kAdded) {
      ASSIGN_OR_RETURN(scores, AddMask(scores, weights));
    }
    if (a_.causal) {
      ASSIGN_OR_RETURN(scores, HideLater(scores, weights));
    }
    ASSIGN_OR_RETURN(const Tensor largest, between(statistics));
    RETURN_IF_ERROR(graph_.Reduce(CUDNN_REDUCE_TENSOR_MAX, scores, largest));
    ASSIGN_OR_RETURN(const Tensor below, between(weights));
    RETURN_IF_ERROR(Apply(CUDNN_POINTWISE_SUB, {scores, largest}, below));
    ASSIGN_OR_RETURN(const Tensor exponentials, between(weights));
    RETURN_IF_ERROR(Apply(CUDNN_POINTWISE_EXP, {below}, exponentials));
    ASSIGN_OR_RETURN(const Tensor sums, between(statistics));
    RETURN_IF_ERROR(graph_.Reduce(CUDNN_REDUCE_TENSOR_ADD, exponentials, sums));
    ASSIGN_OR_RETURN(const Tensor log_sums, between(statistics));
    RETURN_IF_ERROR(Apply(CUDNN_POINTWISE_LOG, {sums}, log_sums));
    RETURN_IF_ERROR(Apply(CUDNN_POINTWISE_ADD, {largest, log_sums}, logs_));
    ASSIGN_OR_RETURN(const Tensor softmax, between(weights, type));
    RETURN_IF_ERROR(Apply(CUDNN_POINTWISE_DIV, {exponentials, sums}, softmax));
    RETURN_IF_ERROR(graph_.Multiply(softmax, v_, o_));
    // Enough for partial sums of O, not for the weights of long sequences.
    const int64_t most =
        (int64_t{1} << 20) + 8 * a_.head_count() * a_.rows * a_.width * int64_t{sizeof(float)};
    return graph_.Compile(dnn_, most);
  }

  int64_t workspace_bytes() const override { return LogBytes() + graph_.workspace_bytes(); }

  absl::Status Launch(Stream& stream, const KernelArguments& arguments) override {
    auto* const workspace = static_cast<std::byte*>(arguments.workspace);
    std::vector<std::pair<Tensor, const void*>> operands = {
        {q_, arguments.inputs[0]},
        {k_, arguments.inputs[1]},
        {v_, arguments.inputs[2]},
        {o_, arguments.outputs[0]},
        {logs_, has_logs_ ? arguments.outputs[1] : workspace},
    };
    if (a_.mask == Attention::Mask::kAdded) operands.emplace_back(mask_, arguments.inputs[3]);
    for (const auto& [tensor, address] : operands) {
      if (reinterpret_cast<uintptr_t>(address) % kWide != 0) {
        return absl::InternalError(absl::StrCat("an operand of attention lies at ",
                                                reinterpret_cast<uintptr_t>(address), ", cuDNN wants ", kWide,
                                                " bytes of alignment"));
      }
    }
    operands.emplace_back(scale_, &a_.scale);
    if (a_.causal) operands.emplace_back(nothing_, &kNothing);
    return graph_.Run(dnn_, static_cast<CudaStream&>(stream).get(), operands, workspace + LogBytes());
  }

 private:
  static constexpr float kNothing = -std::numeric_limits<float>::infinity();

  // Always there: a plan without them might round otherwise, and with recompute one pass wants them, the other not.
  int64_t LogBytes() const {
    const int64_t bytes = a_.head_count() * a_.rows * int64_t{sizeof(float)};
    return has_logs_ ? 0 : (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

  absl::Status Apply(cudnnPointwiseMode_t mode, absl::Span<const Tensor> operands, Tensor y) {
    return graph_.Apply(mode, CUDNN_DATA_FLOAT, operands, y);
  }

  absl::StatusOr<Tensor> AddMask(Tensor scores, const Axes& weights) {
    std::array<int64_t, 4> dims = {1, 1, a_.mask_row_step == 0 ? 1 : a_.rows, a_.columns};
    for (size_t i = 0; i < a_.heads.size(); ++i) {
      if (a_.mask_steps[i] != 0) dims[2 - a_.heads.size() + i] = a_.heads[i];
    }
    ASSIGN_OR_RETURN(mask_, graph_.Add(Kind::kOperand, CUDNN_DATA_FLOAT, DnnGraph::Packed(dims)));
    ASSIGN_OR_RETURN(const Tensor masked, graph_.Add(Kind::kVirtual, CUDNN_DATA_FLOAT, weights));
    RETURN_IF_ERROR(Apply(CUDNN_POINTWISE_ADD, {scores, mask_}, masked));
    return masked;
  }

  absl::StatusOr<Tensor> HideLater(Tensor scores, const Axes& weights) {
    const auto between = [&](cudnnDataType_t of) { return graph_.Add(Kind::kVirtual, of, weights); };
    ASSIGN_OR_RETURN(const Tensor rows, between(CUDNN_DATA_INT32));
    RETURN_IF_ERROR(graph_.Apply(CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_FLOAT, {scores}, rows, 2));
    ASSIGN_OR_RETURN(const Tensor columns, between(CUDNN_DATA_INT32));
    RETURN_IF_ERROR(graph_.Apply(CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_FLOAT, {scores}, columns, 3));
    ASSIGN_OR_RETURN(const Tensor seen, between(CUDNN_DATA_BOOLEAN));
    RETURN_IF_ERROR(graph_.Apply(CUDNN_POINTWISE_CMP_GE, CUDNN_DATA_BOOLEAN, {rows, columns}, seen));
    ASSIGN_OR_RETURN(nothing_, graph_.Add(Kind::kScalar, CUDNN_DATA_FLOAT, DnnGraph::Packed({1, 1, 1, 1})));
    ASSIGN_OR_RETURN(const Tensor kept, between(CUDNN_DATA_FLOAT));
    RETURN_IF_ERROR(Apply(CUDNN_POINTWISE_BINARY_SELECT, {scores, nothing_, seen}, kept));
    return kept;
  }

  const Attention a_;
  const bool has_logs_;
  const cudnnHandle_t dnn_;
  DnnGraph graph_;
  Tensor q_ = 0, k_ = 0, v_ = 0, o_ = 0, logs_ = 0, mask_ = 0, scale_ = 0, nothing_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeDnnAttention(const KernelSpec& spec, const Attention& a,
                                                         CudaContext& context) {
  if (const std::string why = WhyNot(a); !why.empty())
    return absl::UnimplementedError(absl::StrCat("node '", spec.name, "' (", spec.op, ") ", why));
  ASSIGN_OR_RETURN(cudnnContext* const dnn, context.dnn());
  auto kernel = std::make_unique<DnnAttention>(a, HasOutput(spec, 1), dnn);
  RETURN_IF_ERROR(kernel->Prepare());
  return kernel;
}

}  // namespace pipec::cuda
