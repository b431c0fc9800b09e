// The operations and their order are those that cuDNN's engines for attention know (cuDNN's developer guide, "Fused
// Flash Attention", and how NVIDIA's cudnn-frontend 1.x composes them for versions before 9.21). Scores are float32,
// what is multiplied is of 16 bits. Causal rows keep columns whose index is not above their own.
//
// With P = exp(scores - logs): dV = P^T dO, dP = dO V^T, dS = P * (dP - sum over a row of dO * O) * scale, dQ = dS K,
// dK = dS^T Q. Were dQ added up in float32 in memory, cuDNN would keep no dP, but add in whatever order threads come,
// and no note of its engines says so; given dQ itself it keeps dP, and results repeat (cudnn-frontend:
// set_deterministic_algorithm).
#include "runtime/device/cuda/kernels/dnn_attention_graphs.h"

#include <array>
#include <utility>

#include "runtime/base/status.h"

namespace pipec::cuda {
namespace {

using Tensor = DnnGraph::Tensor;
using Kind = DnnGraph::Kind;
using Axes = DnnGraph::Axes;

Axes Transposed(Axes axes) {
  std::swap(axes.dims[2], axes.dims[3]);
  std::swap(axes.steps[2], axes.steps[3]);
  return axes;
}

int64_t RoundUp(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

// What both graphs are made of.
class Composer {
 public:
  Composer(const Attention& a, const AttentionTile& tile)
      : a_(a), tile_(tile), type_(a.dtype == DType::kFloat16 ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16) {}

  Axes Of(int64_t rows, int64_t columns) const {
    return DnnGraph::Packed({tile_.batch, tile_.heads, rows, columns});
  }
  Axes weights() const { return Of(a_.rows, a_.columns); }
  Axes statistics() const { return Of(a_.rows, 1); }

  // Operands of the attention's type.
  absl::Status Add(const Axes& axes, Tensor& tensor) { return AddOperand(type_, axes, tensor); }
  absl::Status AddFloats(const Axes& axes, Tensor& tensor) {
    return AddOperand(CUDNN_DATA_FLOAT, axes, tensor);
  }
  absl::Status AddScalar(Tensor& tensor) {
    ASSIGN_OR_RETURN(tensor, graph().Add(Kind::kScalar, CUDNN_DATA_FLOAT, DnnGraph::Packed({1, 1, 1, 1})));
    return absl::OkStatus();
  }
  // Q, K as its transpose, V or its transpose, O, the logarithms and the scale.
  absl::Status AddInputs(bool v_transposed) {
    const Axes v = Of(a_.columns, a_.width);
    RETURN_IF_ERROR(Add(Of(a_.rows, a_.depth), made_->q));
    RETURN_IF_ERROR(Add(Transposed(Of(a_.columns, a_.depth)), made_->k));
    RETURN_IF_ERROR(Add(v_transposed ? Transposed(v) : v, made_->v));
    RETURN_IF_ERROR(Add(Of(a_.rows, a_.width), made_->o));
    RETURN_IF_ERROR(AddFloats(statistics(), made_->logs));
    return AddScalar(made_->scale);
  }

  // Results that are virtual.
  absl::StatusOr<Tensor> Apply(cudnnPointwiseMode_t mode, absl::Span<const Tensor> operands,
                               const Axes& axes) {
    return Apply(mode, operands, axes, CUDNN_DATA_FLOAT);
  }
  absl::StatusOr<Tensor> ApplyRounded(cudnnPointwiseMode_t mode, absl::Span<const Tensor> operands,
                                      const Axes& axes) {
    return Apply(mode, operands, axes, type_);
  }
  absl::StatusOr<Tensor> Reduce(cudnnReduceTensorOp_t mode, Tensor x) {
    ASSIGN_OR_RETURN(const Tensor y, graph().Add(Kind::kVirtual, CUDNN_DATA_FLOAT, statistics()));
    RETURN_IF_ERROR(graph().Reduce(mode, x, y));
    return y;
  }
  absl::StatusOr<Tensor> Multiply(Tensor a, Tensor b) {
    ASSIGN_OR_RETURN(const Tensor c, graph().Add(Kind::kVirtual, CUDNN_DATA_FLOAT, weights()));
    RETURN_IF_ERROR(graph().Multiply(a, b, c));
    return c;
  }
  absl::StatusOr<Tensor> Transpose(Tensor x, const Axes& axes) {
    ASSIGN_OR_RETURN(const Tensor y, graph().Add(Kind::kVirtual, type_, axes));
    RETURN_IF_ERROR(graph().Transpose(x, y));
    return y;
  }

  // Scaled, with the mask added.
  absl::StatusOr<Tensor> Scores() {
    ASSIGN_OR_RETURN(const Tensor products, Multiply(made_->q, made_->k));
    ASSIGN_OR_RETURN(Tensor scores, Apply(CUDNN_POINTWISE_MUL, {products, made_->scale}, weights()));
    if (a_.mask == Attention::Mask::kNone) return scores;
    std::array<int64_t, 4> dims = {1, 1, a_.mask_row_step == 0 ? 1 : a_.rows, a_.columns};
    const int64_t heads[] = {tile_.batch, tile_.heads};
    const size_t axes = a_.heads.size();
    for (size_t i = 2 - axes; i < 2; ++i) {
      if (a_.mask_steps[i + axes - 2] != 0) dims[i] = heads[i];
    }
    RETURN_IF_ERROR(AddFloats(DnnGraph::Packed(dims), made_->mask));
    return Apply(CUDNN_POINTWISE_ADD, {scores, made_->mask}, weights());
  }

  // The same, but -inf in later columns, if it is causal.
  absl::StatusOr<Tensor> Seen(Tensor scores) {
    if (!a_.causal) return scores;
    const auto index = [&](int64_t axis) -> absl::StatusOr<Tensor> {
      ASSIGN_OR_RETURN(const Tensor y, graph().Add(Kind::kVirtual, CUDNN_DATA_INT32, weights()));
      RETURN_IF_ERROR(graph().Apply(CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_FLOAT, {scores}, y, axis));
      return y;
    };
    ASSIGN_OR_RETURN(const Tensor rows, index(2));
    ASSIGN_OR_RETURN(const Tensor columns, index(3));
    ASSIGN_OR_RETURN(const Tensor seen, graph().Add(Kind::kVirtual, CUDNN_DATA_BOOLEAN, weights()));
    RETURN_IF_ERROR(graph().Apply(CUDNN_POINTWISE_CMP_GE, CUDNN_DATA_BOOLEAN, {rows, columns}, seen));
    RETURN_IF_ERROR(AddScalar(made_->nothing));
    return Apply(CUDNN_POINTWISE_BINARY_SELECT, {scores, made_->nothing, seen}, weights());
  }

  absl::StatusOr<std::shared_ptr<const AttentionGraph>> Compile(cudnnHandle_t dnn, int64_t most_workspace) {
    RETURN_IF_ERROR(graph().Compile(dnn, most_workspace));
    return made_;
  }

  DnnGraph& graph() { return made_->graph; }
  AttentionGraph& made() { return *made_; }

 private:
  absl::Status AddOperand(cudnnDataType_t type, const Axes& axes, Tensor& tensor) {
    ASSIGN_OR_RETURN(tensor, graph().Add(Kind::kOperand, type, axes));
    return absl::OkStatus();
  }
  absl::StatusOr<Tensor> Apply(cudnnPointwiseMode_t mode, absl::Span<const Tensor> operands, const Axes& axes,
                               cudnnDataType_t type) {
    ASSIGN_OR_RETURN(const Tensor y, graph().Add(Kind::kVirtual, type, axes));
    RETURN_IF_ERROR(graph().Apply(mode, CUDNN_DATA_FLOAT, operands, y));
    return y;
  }

  const Attention& a_;
  const AttentionTile tile_;
  const cudnnDataType_t type_;
  const std::shared_ptr<AttentionGraph> made_ = std::make_shared<AttentionGraph>();
};

}  // namespace

absl::StatusOr<std::shared_ptr<const AttentionGraph>> ComposeAttention(const Attention& a,
                                                                       const AttentionTile& tile,
                                                                       cudnnHandle_t dnn) {
  Composer with(a, tile);
  AttentionGraph& of = with.made();
  RETURN_IF_ERROR(with.AddInputs(/*v_transposed=*/false));
  ASSIGN_OR_RETURN(Tensor scores, with.Scores());
  ASSIGN_OR_RETURN(scores, with.Seen(scores));
  ASSIGN_OR_RETURN(const Tensor largest, with.Reduce(CUDNN_REDUCE_TENSOR_MAX, scores));
  ASSIGN_OR_RETURN(const Tensor below, with.Apply(CUDNN_POINTWISE_SUB, {scores, largest}, with.weights()));
  ASSIGN_OR_RETURN(const Tensor exponentials, with.Apply(CUDNN_POINTWISE_EXP, {below}, with.weights()));
  ASSIGN_OR_RETURN(const Tensor sums, with.Reduce(CUDNN_REDUCE_TENSOR_ADD, exponentials));
  ASSIGN_OR_RETURN(const Tensor log_sums, with.Apply(CUDNN_POINTWISE_LOG, {sums}, with.statistics()));
  RETURN_IF_ERROR(with.graph().Apply(CUDNN_POINTWISE_ADD, CUDNN_DATA_FLOAT, {largest, log_sums}, of.logs));
  ASSIGN_OR_RETURN(const Tensor p,
                   with.ApplyRounded(CUDNN_POINTWISE_DIV, {exponentials, sums}, with.weights()));
  RETURN_IF_ERROR(with.graph().Multiply(p, of.v, of.o));
  // Enough for partial sums of O, not for the weights of long sequences.
  return with.Compile(dnn, (int64_t{1} << 20) + 8 * tile.count() * a.rows * a.width * int64_t{sizeof(float)});
}

int64_t AttentionGradBytes(const Attention& a, int64_t heads) {
  return heads * RoundUp(a.rows, 128) * RoundUp(a.columns, 128) * SizeOf(a.dtype);
}

absl::StatusOr<std::shared_ptr<const AttentionGraph>> ComposeAttentionGrad(const Attention& a,
                                                                           const AttentionTile& tile,
                                                                           cudnnHandle_t dnn) {
  Composer with(a, tile);
  AttentionGraph& of = with.made();
  const Axes weights = with.weights(), queries = with.Of(a.rows, a.depth), keys = with.Of(a.columns, a.depth),
             results = with.Of(a.rows, a.width);
  RETURN_IF_ERROR(with.AddInputs(/*v_transposed=*/true));
  RETURN_IF_ERROR(with.Add(results, of.d_o));
  RETURN_IF_ERROR(with.Add(queries, of.d_q));
  RETURN_IF_ERROR(with.Add(keys, of.d_k));
  RETURN_IF_ERROR(with.Add(with.Of(a.columns, a.width), of.d_v));
  RETURN_IF_ERROR(with.AddFloats(with.statistics(), of.along));
  RETURN_IF_ERROR(with.AddScalar(of.one));

  ASSIGN_OR_RETURN(const Tensor parts, with.Apply(CUDNN_POINTWISE_MUL, {of.d_o, of.o}, results));
  ASSIGN_OR_RETURN(const Tensor along, with.Reduce(CUDNN_REDUCE_TENSOR_ADD, parts));
  RETURN_IF_ERROR(with.graph().Apply(CUDNN_POINTWISE_MUL, CUDNN_DATA_FLOAT, {along, of.one}, of.along));

  ASSIGN_OR_RETURN(Tensor scores, with.Scores());
  ASSIGN_OR_RETURN(scores, with.Apply(CUDNN_POINTWISE_SUB, {scores, of.logs}, weights));
  ASSIGN_OR_RETURN(scores, with.Seen(scores));
  ASSIGN_OR_RETURN(const Tensor p, with.Apply(CUDNN_POINTWISE_EXP, {scores}, weights));
  ASSIGN_OR_RETURN(const Tensor p_transposed, with.Transpose(p, Transposed(weights)));
  RETURN_IF_ERROR(with.graph().Multiply(p_transposed, of.d_o, of.d_v));

  ASSIGN_OR_RETURN(const Tensor d_p, with.Multiply(of.d_o, of.v));
  ASSIGN_OR_RETURN(const Tensor above, with.Apply(CUDNN_POINTWISE_SUB, {d_p, of.along}, weights));
  ASSIGN_OR_RETURN(const Tensor unscaled, with.Apply(CUDNN_POINTWISE_MUL, {above, p}, weights));
  ASSIGN_OR_RETURN(const Tensor d_s, with.ApplyRounded(CUDNN_POINTWISE_MUL, {unscaled, of.scale}, weights));
  ASSIGN_OR_RETURN(const Tensor d_s_transposed, with.Transpose(d_s, Transposed(weights)));
  RETURN_IF_ERROR(with.graph().Multiply(d_s_transposed, of.q, of.d_k));
  ASSIGN_OR_RETURN(const Tensor k, with.Transpose(of.k, keys));
  RETURN_IF_ERROR(with.graph().Multiply(d_s, k, of.d_q));
  return with.Compile(dnn, (int64_t{1} << 20) + AttentionGradBytes(a, tile.count()));
}

}  // namespace pipec::cuda
