// FusedAttention (Q, K, V, mask?) -> (O, log_sum_exp?): cuDNN's where it has it (dnn_attention.h), else block by block
// (operands/attention_blocks.h): cuBLASLt's products, between them a softmax whose weights are rounded to the
// operands' type.
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

// run(first column, their scores as a vector): by this thread, of the columns that the row sees.
template <typename C, typename Run>
__device__ __forceinline__ void ForScores(const C* scores, int64_t columns, int64_t seen, const Run& run) {
  constexpr int kUnit = Vector<C>::kSize;
  if (columns % kUnit == 0) {
    for (int64_t j = threadIdx.x * kUnit; j < seen; j += kRowThreads * kUnit) run(j, LoadVector(scores + j));
  } else {
    for (int64_t j = threadIdx.x; j < seen; j += kRowThreads) run(j, LoadElements<1>(scores + j));
  }
}

template <typename C>
struct Largest {
  const AttentionRow<C>& row;
  C& value;
  template <int kSize>
  __device__ __forceinline__ void operator()(int64_t first, const Vector<C, kSize>& scores) const {
#pragma unroll
    for (int u = 0; u < kSize; ++u) {
      if (first + u < row.seen) value = MaxOf::Combine(value, row.Masked(first + u, scores.values[u]));
    }
  }
};

template <typename C>
struct SumOfExponentials {
  const AttentionRow<C>& row;
  C largest;
  C& value;
  template <int kSize>
  __device__ __forceinline__ void operator()(int64_t first, const Vector<C, kSize>& scores) const {
#pragma unroll
    for (int u = 0; u < kSize; ++u) {
      if (first + u < row.seen) value += exp(row.Masked(first + u, scores.values[u]) - largest);
    }
  }
};

template <typename T>
struct WriteWeights {
  using C = Compute<T>;
  const AttentionRow<C>& row;
  C largest, factor;
  T* weights;
  template <int kSize>
  __device__ __forceinline__ void operator()(int64_t first, const Vector<C, kSize>& scores) const {
    Vector<T, kSize> written;
#pragma unroll
    for (int u = 0; u < kSize; ++u) {
      const bool seen = first + u < row.seen && factor != C(0);
      written.values[u] =
          Narrow<T>(seen ? exp(row.Masked(first + u, scores.values[u]) - largest) * factor : C(0));
    }
    StoreVector(weights + first, written);
  }
};

// A block of threads a row. `weights` may be `scores`.
template <typename T>
__global__ void __launch_bounds__(kRowThreads, 1)
    WeighRows(const Compute<T>* scores, T* weights, Compute<T>* logs, const AttentionRows<Compute<T>> rows) {
  using C = Compute<T>;
  const int64_t columns = rows.block.columns;
  for (int64_t place = blockIdx.x; place < rows.count(); place += gridDim.x) {
    const AttentionRow<C> row = rows.At(place);
    const C* const s = scores + place * columns;
    C largest = static_cast<C>(-INFINITY), sum = 0;
    ForScores(s, columns, row.seen, Largest<C>{row, largest});
    largest = FoldThreads<MaxOf, kRowThreads>(largest, static_cast<C>(-INFINITY));
    ForScores(s, columns, row.seen, SumOfExponentials<C>{row, largest, sum});
    sum = FoldThreads<SumOf, kRowThreads>(sum, C(0));
    const C log_sum = largest + log(sum);
    if (logs != nullptr && threadIdx.x == 0) logs[row.row] = log_sum;
    const bool is_zero = rows.zero_rows && !isfinite(log_sum);
    ForScores(s, columns, columns,
              WriteWeights<T>{row, largest, is_zero ? C(0) : C(1) / sum, weights + place * columns});
  }
}

template <typename T>
class AttentionKernel : public Kernel {
 public:
  using C = Compute<T>;

  static absl::StatusOr<std::unique_ptr<Kernel>> Make(const KernelSpec& spec, const Attention& a,
                                                      CudaContext& context) {
    auto kernel = std::make_unique<AttentionKernel>();
    kernel->a_ = a;
    kernel->has_logs_ = HasOutput(spec, 1);
    kernel->blocks_ = AttentionBlocks(a, kBlockLimits);
    const auto make = [&](const MatrixProduct& product) { return MakeProduct(spec, product, context); };
    ASSIGN_OR_RETURN(
        kernel->scores_,
        BlockProducts::Make(
            kernel->blocks_, [&](const AttentionBlock& block) { return ScoresProduct(a, block, kDType<C>); },
            make));
    ASSIGN_OR_RETURN(
        kernel->results_,
        BlockProducts::Make(
            kernel->blocks_, [&](const AttentionBlock& block) { return ResultProduct(a, block); }, make));
    const int64_t weights = MostWeights(kernel->blocks_);
    kernel->score_bytes_ = AlignedBytes(weights * sizeof(C));
    kernel->weight_bytes_ = kInPlace ? 0 : AlignedBytes(weights * sizeof(T));
    return kernel;
  }

  int64_t workspace_bytes() const override {
    return score_bytes_ + weight_bytes_ + std::max(scores_.workspace_bytes(), results_.workspace_bytes());
  }

  absl::Status Launch(Stream& stream, const KernelArguments& arguments) override {
    const T *const q = Input<T>(arguments, 0), *const k = Input<T>(arguments, 1),
                   *const v = Input<T>(arguments, 2);
    const void* const mask = a_.mask == Attention::Mask::kNone ? nullptr : arguments.inputs[3];
    T* const o = Output<T>(arguments, 0);
    C* const logs = has_logs_ ? Output<C>(arguments, 1) : nullptr;
    auto* const workspace = static_cast<std::byte*>(arguments.workspace);
    auto* const scores = reinterpret_cast<C*>(workspace);
    auto* const weights = reinterpret_cast<T*>(workspace + (kInPlace ? 0 : score_bytes_));
    void* const rest = workspace + score_bytes_ + weight_bytes_;
    for (const AttentionBlock& block : blocks_) {
      const int64_t row = block.head * a_.rows + block.row, column = block.head * a_.columns;
      RETURN_IF_ERROR(scores_.Run(block, stream, q + row * a_.depth, k + column * a_.depth, scores, rest));
      const AttentionRows<C> rows(a_, block, mask);
      RETURN_IF_ERROR(pipec::Launch(WeighRows<T>, GridOf(rows), kRowThreads,
                                    static_cast<CudaStream&>(stream).get(), scores, weights, logs, rows));
      RETURN_IF_ERROR(results_.Run(block, stream, weights, v + column * a_.width, o + row * a_.width, rest));
    }
    return absl::OkStatus();
  }

 private:
  static constexpr bool kInPlace = sizeof(T) == sizeof(C);

  Attention a_;
  bool has_logs_ = false;
  std::vector<AttentionBlock> blocks_;
  BlockProducts scores_, results_;
  int64_t score_bytes_ = 0, weight_bytes_ = 0;
};

absl::StatusOr<std::unique_ptr<Kernel>> PrepareAttention(const KernelSpec& spec, CudaContext& context) {
  ASSIGN_OR_RETURN(const Attention a, Attention::Of(spec));
  absl::StatusOr<std::unique_ptr<Kernel>> dnn = MakeDnnAttention(spec, a, context);
  if (!absl::IsUnimplemented(dnn.status())) return dnn;
  return ForAllFloats(spec, a.dtype, [&](auto tag) {
    return AttentionKernel<typename decltype(tag)::type>::Make(spec, a, context);
  });
}

}  // namespace

void RegisterAttentionKernels(KernelRegistry& registry) {
  registry.Add("FusedAttention", kPipecDomain, PrepareAttention);
}

}  // namespace pipec::cuda
