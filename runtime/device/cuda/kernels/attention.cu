// FusedAttention (Q, K, V, mask?) -> (O, log_sum_exp?): cuDNN's where it has it (dnn_attention.h), else one kernel.
#include "runtime/base/status.h"
#include "runtime/device/cuda/kernels/attention.cuh"
#include "runtime/device/cuda/kernels/dnn_attention.h"
#include "runtime/device/cuda/kernels/make_kernel.h"
#include "runtime/device/cuda/kernels/register.h"
#include "runtime/device/cuda/launch.h"

namespace pipec::cuda {
namespace {

template <typename T>
struct Forward {
  using C = Compute<T>;
  Matrix<T> q, k, v;
  AttentionScores<C> scores;
  Results<T> o;
  C* logs;  // may be null
};

// Of the threads that have columns of the same rows: a part of a warp.
template <typename Op, typename C>
__device__ __forceinline__ C FoldRow(C value) {
#pragma unroll
  for (int offset = kUnits / 2; offset > 0; offset /= 2)
    value = Op::Combine(value, __shfl_xor_sync(0xffffffffu, value, offset));
  return value;
}

// The softmax of rows whose columns come tile by tile: weights are exponentials of what scores are above the largest
// so far, and what was summed before shrinks when it grows.
template <typename C>
struct RunningSoftmax {
  using Part = TilePart<C>;
  C largest[Part::kRows], sum[Part::kRows];  // sums of this thread's columns

  __device__ __forceinline__ RunningSoftmax() {
#pragma unroll
    for (int i = 0; i < Part::kRows; ++i) largest[i] = static_cast<C>(-INFINITY), sum[i] = 0;
  }

  // Makes scores weights; `results`: what weights were multiplied with before.
  __device__ __forceinline__ void Weigh(const TileOfScores<C, false>& tile, Part& scores, Part& results) {
#pragma unroll
    for (int i = 0; i < Part::kRows; ++i) {
      C most = largest[i];
#pragma unroll
      for (int j = 0; j < Part::kColumns; ++j) {
        C& score = scores.values[i][j];
        if (!tile.Sees(Part::FirstRow() + i, Part::FirstColumn() + j)) score = static_cast<C>(-INFINITY);
        most = MaxOf::Combine(most, score);
      }
      most = FoldRow<MaxOf>(most);
      // Where all were hidden so far, exponentials are to be 0, not those of inf - inf.
      const C base = most == static_cast<C>(-INFINITY) ? C(0) : most;
      const C shrunk = exp(largest[i] - base);
      largest[i] = most;
      sum[i] *= shrunk;
#pragma unroll
      for (int j = 0; j < Part::kColumns; ++j) {
        results.values[i][j] *= shrunk;
        sum[i] += scores.values[i][j] = exp(scores.values[i][j] - base);
      }
    }
  }

  // The sum of a row's exponentials: NaN if there was none but of -inf.
  __device__ __forceinline__ C Sum(int i) const {
    const C all = FoldRow<SumOf>(sum[i]);
    return largest[i] == static_cast<C>(-INFINITY) ? static_cast<C>(NAN) : all;
  }
};

// A block for a tile of O.
template <typename T>
__global__ void __launch_bounds__(kTileThreads) Attend(const Forward<T> at) {
  using C = Compute<T>;
  using Part = TilePart<C>;
  __shared__ Tiles<T> tiles;
  const OwnTile<C> own(at.q.rows, true);
  const Matrix<T> q = at.q.OfHead(own.head), k = at.k.OfHead(own.head), v = at.v.OfHead(own.head);
  const HeadScores<C> head = at.scores.OfHead(own.head);
  const int columns = head.causal ? min(own.row + kSide<C>, head.columns) : head.columns;
  RunningSoftmax<C> softmax;
  Part o;
  for (int column = 0; column < columns; column += kSide<C>) {
    const TileOfScores<C, false> tile{head, own.row, column};
    Part scores;
    tiles.AddProductOfRows(q, own.row, k, column, scores);
    tile.Finish(scores, tiles);
    softmax.Weigh(tile, scores, o);
    tiles.StoreFactor(scores);
    tiles.AddProductOfFactor(v, column, own.column, o);
  }
#pragma unroll
  for (int i = 0; i < Part::kRows; ++i) {
    const int row = own.row + Part::FirstRow() + i;
    const C sum = softmax.Sum(i), log_sum = softmax.largest[i] + log(sum);
    const bool is_zero = head.IsZero(log_sum);
#pragma unroll
    for (int j = 0; j < Part::kColumns; ++j) o.values[i][j] = is_zero ? C(0) : o.values[i][j] * (C(1) / sum);
    if (at.logs != nullptr && own.column == 0 && Part::FirstColumn() == 0 && row < head.rows)
      at.logs[own.head * head.rows + row] = log_sum;
  }
  at.o.OfHead(own.head).Store(own.row, own.column, o);
}

template <typename T>
absl::StatusOr<std::unique_ptr<Kernel>> MakeAttention(const KernelSpec& spec, const Attention& a) {
  using C = Compute<T>;
  RETURN_IF_ERROR(CheckSizes(spec, a));
  const dim3 grid = TileGrid<C>(a, a.rows, a.width);
  return MakeKernel(
      0, [a, grid, has_logs = HasOutput(spec, 1)](cudaStream_t stream, const KernelArguments& arguments) {
        const Forward<T> forward{{Input<T>(arguments, 0), a.rows, a.depth},
                                 {Input<T>(arguments, 1), a.columns, a.depth},
                                 {Input<T>(arguments, 2), a.columns, a.width},
                                 {a, a.mask == Attention::Mask::kNone ? nullptr : arguments.inputs[3]},
                                 {Output<T>(arguments, 0), a.rows, a.width},
                                 has_logs ? Output<C>(arguments, 1) : nullptr};
        return Launch(Attend<T>, grid, kTileThreads, stream, forward);
      });
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareAttention(const KernelSpec& spec, CudaContext& context) {
  ASSIGN_OR_RETURN(const Attention a, Attention::Of(spec));
  absl::StatusOr<std::unique_ptr<Kernel>> dnn = MakeDnnAttention(spec, a, context);
  if (!absl::IsUnimplemented(dnn.status())) return dnn;
  return ForAllFloats(spec, a.dtype,
                      [&](auto tag) { return MakeAttention<typename decltype(tag)::type>(spec, a); });
}

}  // namespace

void RegisterAttentionKernels(KernelRegistry& registry) {
  registry.Add("FusedAttention", kPipecDomain, PrepareAttention);
}

}  // namespace pipec::cuda
