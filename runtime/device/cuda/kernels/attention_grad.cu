// FusedAttentionGrad (dO, Q, K, V, O, log_sum_exp, mask?) -> (dQ, dK, dV): cuDNN's where it has it (dnn_attention.h),
// else block by block (operands/attention_blocks.h), with cuBLASLt's products. With weights P = exp(s - log_sum_exp):
// dV = P^T dO, ds = scale * P * (dO V^T - sum over a row of dO * O), dQ = ds K, dK = ds^T Q (Dao et al., appendix
// B.2).
#include <cmath>

#include "runtime/base/status.h"
#include "runtime/device/cuda/kernels/attention.cuh"
#include "runtime/device/cuda/kernels/dnn_attention.h"
#include "runtime/device/cuda/kernels/make_kernel.h"
#include "runtime/device/cuda/kernels/matmul.h"
#include "runtime/device/cuda/kernels/register.h"
#include "runtime/device/cuda/launch.h"

namespace pipec::cuda {
namespace {

template <typename T>
struct Backward {
  using C = Compute<T>;
  const T *d_o, *o;
  const C* logs;
  const C *scores, *d_weights;  // of the block
  T *weights, *d_scores;        // may lie where those lie
  int64_t width;
  C scale;
};

template <typename T, int kUnit>
__device__ __forceinline__ void BackThrough(const Backward<T>& at, const AttentionRow<Compute<T>>& row,
                                            int64_t first, int64_t columns, Compute<T> along,
                                            Compute<T> log_sum, bool is_zero) {
  using C = Compute<T>;
  for (int64_t j = threadIdx.x * kUnit; j < columns; j += kRowThreads * kUnit) {
    const Vector<C, kUnit> scores = LoadElements<kUnit>(at.scores + first + j),
                           d_weights = LoadElements<kUnit>(at.d_weights + first + j);
    Vector<T, kUnit> weights, d_scores;
#pragma unroll
    for (int u = 0; u < kUnit; ++u) {
      C p = 0, d = 0;
      if (j + u < row.seen && !is_zero) {
        p = exp(row.Masked(j + u, scores.values[u]) - log_sum);
        if (!row.Hides(j + u)) d = p * (d_weights.values[u] - along) * at.scale;
      }
      weights.values[u] = Narrow<T>(p);
      d_scores.values[u] = Narrow<T>(d);
    }
    StoreVector(at.weights + first + j, weights);
    StoreVector(at.d_scores + first + j, d_scores);
  }
}

// A block of threads a row.
template <typename T>
__global__ void __launch_bounds__(kRowThreads, 1)
    BackThroughRows(const Backward<T> at, const AttentionRows<Compute<T>> rows) {
  using C = Compute<T>;
  const int64_t columns = rows.block.columns;
  for (int64_t place = blockIdx.x; place < rows.count(); place += gridDim.x) {
    const AttentionRow<C> row = rows.At(place);
    C along = 0;
    for (int64_t e = threadIdx.x; e < at.width; e += kRowThreads)
      along += Widen(at.d_o[row.row * at.width + e]) * Widen(at.o[row.row * at.width + e]);
    along = FoldThreads<SumOf, kRowThreads>(along, C(0));
    const C log_sum = at.logs[row.row];
    const bool is_zero = rows.zero_rows && !isfinite(log_sum);
    if (columns % Vector<C>::kSize == 0) {
      BackThrough<T, Vector<C>::kSize>(at, row, place * columns, columns, along, log_sum, is_zero);
    } else {
      BackThrough<T, 1>(at, row, place * columns, columns, along, log_sum, is_zero);
    }
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads) RoundSums(const Compute<T>* sums, T* y, int64_t n) {
  for (int64_t i = FirstItem(); i < n; i += ItemStride()) y[i] = Narrow<T>(sums[i]);
}

template <typename T>
class AttentionGradKernel : public Kernel {
 public:
  using C = Compute<T>;

  static absl::StatusOr<std::unique_ptr<Kernel>> Make(const KernelSpec& spec, const Attention& a,
                                                      CudaContext& context) {
    auto kernel = std::make_unique<AttentionGradKernel>();
    kernel->a_ = a;
    kernel->blocks_ = AttentionBlocks(a, kBlockLimits);
    kernel->rounds_ = !kInPlace && kernel->blocks_.front().rows < a.rows;
    const DType sums = kernel->rounds_ ? kDType<C> : a.dtype;
    const auto make = [&](BlockProducts& products, auto form) -> absl::Status {
      ASSIGN_OR_RETURN(products,
                       BlockProducts::Make(kernel->blocks_, form, [&](const MatrixProduct& product) {
                         return MakeProduct(spec, product, context);
                       }));
      kernel->product_bytes_ = std::max(kernel->product_bytes_, products.workspace_bytes());
      return absl::OkStatus();
    };
    using Block = AttentionBlock;
    RETURN_IF_ERROR(
        make(kernel->scores_, [&](const Block& block) { return ScoresProduct(a, block, kDType<C>); }));
    RETURN_IF_ERROR(make(kernel->d_weights_,
                         [&](const Block& block) { return WeightGradientProduct(a, block, kDType<C>); }));
    RETURN_IF_ERROR(
        make(kernel->d_values_, [&](const Block& block) { return ValueGradientProduct(a, block, sums); }));
    RETURN_IF_ERROR(
        make(kernel->d_queries_, [&](const Block& block) { return QueryGradientProduct(a, block); }));
    RETURN_IF_ERROR(
        make(kernel->d_keys_, [&](const Block& block) { return KeyGradientProduct(a, block, sums); }));
    const int64_t weights = MostWeights(kernel->blocks_);
    kernel->score_bytes_ = AlignedBytes(weights * sizeof(C));
    kernel->weight_bytes_ = kInPlace ? 0 : AlignedBytes(weights * sizeof(T));
    kernel->key_sum_bytes_ = kernel->rounds_ ? AlignedBytes(a.columns * a.depth * sizeof(C)) : 0;
    kernel->value_sum_bytes_ = kernel->rounds_ ? AlignedBytes(a.columns * a.width * sizeof(C)) : 0;
    return kernel;
  }

  int64_t workspace_bytes() const override {
    return 2 * (score_bytes_ + weight_bytes_) + key_sum_bytes_ + value_sum_bytes_ + product_bytes_;
  }

  absl::Status Launch(Stream& stream, const KernelArguments& arguments) override {
    const T *const d_o = Input<T>(arguments, 0), *const q = Input<T>(arguments, 1),
                   *const k = Input<T>(arguments, 2), *const v = Input<T>(arguments, 3);
    const void* const mask = a_.mask == Attention::Mask::kNone ? nullptr : arguments.inputs[6];
    auto* at = static_cast<std::byte*>(arguments.workspace);
    const auto take = [&at](int64_t bytes) { return std::exchange(at, at + bytes); };
    auto *const scores = reinterpret_cast<C*>(take(score_bytes_)), *const d_weights = reinterpret_cast<C*>(
                                                                       take(score_bytes_));
    auto *const weights = kInPlace ? reinterpret_cast<T*>(scores) : reinterpret_cast<T*>(take(weight_bytes_)),
                *const d_scores =
                    kInPlace ? reinterpret_cast<T*>(d_weights) : reinterpret_cast<T*>(take(weight_bytes_));
    auto *const key_sums = reinterpret_cast<C*>(take(key_sum_bytes_)), *const value_sums =
                                                                           reinterpret_cast<C*>(
                                                                               take(value_sum_bytes_));
    void* const rest = at;
    const Backward<T> backward{
        d_o,      Input<T>(arguments, 4),  Input<C>(arguments, 5), scores, d_weights, weights, d_scores,
        a_.width, static_cast<C>(a_.scale)};
    for (const AttentionBlock& block : blocks_) {
      const int64_t row = block.head * a_.rows + block.row, column = block.head * a_.columns;
      const T *const q_block = q + row * a_.depth, *const k_block = k + column * a_.depth,
                     *const d_o_block = d_o + row * a_.width;
      T *const dk = Output<T>(arguments, 1) + column * a_.depth, *const dv = Output<T>(arguments, 2) +
                                                                             column * a_.width;
      void *const to_dk = rounds_ ? static_cast<void*>(key_sums) : dk, *const to_dv =
                                                                           rounds_ ? static_cast<void*>(
                                                                                         value_sums)
                                                                                   : dv;
      RETURN_IF_ERROR(scores_.Run(block, stream, q_block, k_block, scores, rest));
      RETURN_IF_ERROR(d_weights_.Run(block, stream, d_o_block, v + column * a_.width, d_weights, rest));
      const cudaStream_t queue = static_cast<CudaStream&>(stream).get();
      const AttentionRows<C> rows(a_, block, mask);
      RETURN_IF_ERROR(pipec::Launch(BackThroughRows<T>, GridOf(rows), kRowThreads, queue, backward, rows));
      RETURN_IF_ERROR(d_values_.Run(block, stream, weights, d_o_block, to_dv, rest));
      RETURN_IF_ERROR(
          d_queries_.Run(block, stream, d_scores, k_block, Output<T>(arguments, 0) + row * a_.depth, rest));
      RETURN_IF_ERROR(d_keys_.Run(block, stream, d_scores, q_block, to_dk, rest));
      if (!rounds_ || block.row > 0) continue;
      RETURN_IF_ERROR(Round(queue, key_sums, dk, a_.columns * a_.depth));
      RETURN_IF_ERROR(Round(queue, value_sums, dv, a_.columns * a_.width));
    }
    return absl::OkStatus();
  }

 private:
  static constexpr bool kInPlace = sizeof(T) == sizeof(C);

  static absl::Status Round(cudaStream_t stream, const C* sums, T* y, int64_t n) {
    return pipec::Launch(RoundSums<T>, BlocksFor(n), kThreads, stream, sums, y, n);
  }

  Attention a_;
  bool rounds_ =
      false;  // several blocks add to a head's dK and dV, which are of 16 bits: sums of float32 first
  std::vector<AttentionBlock> blocks_;
  BlockProducts scores_, d_weights_, d_values_, d_queries_, d_keys_;
  int64_t score_bytes_ = 0, weight_bytes_ = 0, key_sum_bytes_ = 0, value_sum_bytes_ = 0, product_bytes_ = 0;
};

absl::StatusOr<std::unique_ptr<Kernel>> PrepareAttentionGrad(const KernelSpec& spec, CudaContext& context) {
  ASSIGN_OR_RETURN(const Attention a, Attention::OfGrad(spec));
  absl::StatusOr<std::unique_ptr<Kernel>> dnn = MakeDnnAttentionGrad(spec, a, context);
  if (!absl::IsUnimplemented(dnn.status())) return dnn;
  return ForAllFloats(spec, a.dtype, [&](auto tag) {
    return AttentionGradKernel<typename decltype(tag)::type>::Make(spec, a, context);
  });
}

}  // namespace

void RegisterAttentionGradKernels(KernelRegistry& registry) {
  registry.Add("FusedAttentionGrad", kPipecDomain, PrepareAttentionGrad);
}

}  // namespace pipec::cuda
