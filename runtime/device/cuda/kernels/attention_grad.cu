// FusedAttentionGrad (dO, Q, K, V, O, log_sum_exp, mask?) -> (dQ, dK, dV): cuDNN's where it has it (dnn_attention.h),
// else three kernels. With weights P = exp(s - log_sum_exp): dV = P^T dO, ds = scale * P * (dO V^T - sum over a row of
// dO * O), dQ = ds K, dK = ds^T Q (Dao et al., "FlashAttention", appendix B.2). Scores are computed once for dQ, whose
// rows have a block of threads each, and once more for dK and dV, whose columns have: nobody adds to another's sums.
#include "runtime/base/status.h"
#include "runtime/device/cuda/kernels/attention.cuh"
#include "runtime/device/cuda/kernels/dnn_attention.h"
#include "runtime/device/cuda/kernels/make_kernel.h"
#include "runtime/device/cuda/kernels/register.h"
#include "runtime/device/cuda/launch.h"

namespace pipec::cuda {
namespace {

template <typename T>
struct Backward {
  using C = Compute<T>;
  Matrix<T> d_o, q, k, v;
  const C *logs, *along;  // of all heads' rows
  AttentionScores<C> scores;
};

// A row of scores, as the way back sees it. One that is no row, or is to be zeros, weighs nothing.
template <typename C>
struct RowBack {
  C log_sum = 0, along = 0;
  bool weighs = false;

  __device__ __forceinline__ RowBack(const HeadScores<C>& head, const C* logs, const C* sums, int row) {
    if (row >= head.rows) return;
    log_sum = logs[row], along = sums[row];
    weighs = !head.IsZero(log_sum);
  }
};

// A warp a row: the sum of dO * O.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    SumAlongRows(const Matrix<T> d_o, const Matrix<T> o, Compute<T>* along) {
  for (int64_t each = FirstItem() / 32; each < o.rows; each += ItemStride() / 32) {
    const int row = static_cast<int>(each);
    Compute<T> sum = 0;
    for (int column = threadIdx.x % 32 * Matrix<T>::kSize; column < o.columns;
         column += 32 * Matrix<T>::kSize) {
      const auto gradient = d_o.Load(row, column), result = o.Load(row, column);
#pragma unroll
      for (int u = 0; u < Matrix<T>::kSize; ++u) sum += Widen(gradient.values[u]) * Widen(result.values[u]);
    }
    sum = FoldThreads<SumOf, 32>(sum, Compute<T>(0));
    if (threadIdx.x % 32 == 0) along[row] = sum;
  }
}

// A block for a tile of dQ.
template <typename T>
__global__ void __launch_bounds__(kTileThreads) QueryGradients(const Backward<T> at, const Results<T> d_q) {
  using C = Compute<T>;
  using Part = TilePart<C>;
  __shared__ Tiles<T> tiles;
  const OwnTile<C> own(at.q.rows, true);
  const Matrix<T> d_o = at.d_o.OfHead(own.head), q = at.q.OfHead(own.head), k = at.k.OfHead(own.head),
                  v = at.v.OfHead(own.head);
  const C* const logs = at.logs + own.head * q.rows;
  const C* const along = at.along + own.head * q.rows;
  const HeadScores<C> head = at.scores.OfHead(own.head);
  const int columns = head.causal ? min(own.row + kSide<C>, head.columns) : head.columns;
  Part sums;
  for (int column = 0; column < columns; column += kSide<C>) {
    const TileOfScores<C, false> tile{head, own.row, column};
    Part scores, d_weights;
    tiles.AddProductOfRows(q, own.row, k, column, scores);
    tile.Finish(scores, tiles);
    tiles.AddProductOfRows(d_o, own.row, v, column, d_weights);
#pragma unroll
    for (int i = 0; i < Part::kRows; ++i) {
      const RowBack<C> row(head, logs, along, own.row + Part::FirstRow() + i);
#pragma unroll
      for (int j = 0; j < Part::kColumns; ++j) {
        C& d = d_weights.values[i][j];
        const bool sees = row.weighs && tile.Sees(Part::FirstRow() + i, Part::FirstColumn() + j);
        d = sees ? exp(scores.values[i][j] - row.log_sum) * (d - row.along) * head.scale : C(0);
      }
    }
    tiles.StoreFactor(d_weights);
    tile.ClearHidden(tiles);
    tiles.AddProductOfFactor(k, column, own.column, sums);
  }
  d_q.OfHead(own.head).Store(own.row, own.column, sums);
}

// A block for a tile of dK and one of dV: here a tile's rows are a head's columns.
template <typename T>
__global__ void __launch_bounds__(kTileThreads, 3)
    KeyValueGradients(const Backward<T> at, const Results<T> d_k, const Results<T> d_v) {
  using C = Compute<T>;
  using Part = TilePart<C>;
  __shared__ Tiles<T> tiles;
  const OwnTile<C> own(at.k.rows, false);
  const Matrix<T> d_o = at.d_o.OfHead(own.head), q = at.q.OfHead(own.head), k = at.k.OfHead(own.head),
                  v = at.v.OfHead(own.head);
  const C* const logs = at.logs + own.head * q.rows;
  const C* const along = at.along + own.head * q.rows;
  const HeadScores<C> head = at.scores.OfHead(own.head);
  Part key_sums, value_sums;
  for (int row = head.causal ? own.row : 0; row < head.rows; row += kSide<C>) {
    const TileOfScores<C, true> scores{head, row, own.row};
    Part weights;
    tiles.AddProductOfRows(k, own.row, q, row, weights);
    scores.Finish(weights, tiles);
#pragma unroll
    for (int j = 0; j < Part::kColumns; ++j) {
      const RowBack<C> back(head, logs, along, row + Part::FirstColumn() + j);
#pragma unroll
      for (int i = 0; i < Part::kRows; ++i) {
        C& weight = weights.values[i][j];
        const bool sees = back.weighs && scores.Sees(Part::FirstRow() + i, Part::FirstColumn() + j);
        weight = sees ? exp(weight - back.log_sum) : C(0);
      }
    }
    tiles.StoreFactor(weights);
    if (own.column < v.columns) tiles.AddProductOfFactor(d_o, row, own.column, value_sums);
    if (own.column >= q.columns) continue;
    Part d_weights;
    tiles.AddProductOfRows(v, own.row, d_o, row, d_weights);
    tiles.RestoreFactor(weights);
#pragma unroll
    for (int j = 0; j < Part::kColumns; ++j) {
      const RowBack<C> back(head, logs, along, row + Part::FirstColumn() + j);
#pragma unroll
      for (int i = 0; i < Part::kRows; ++i) {
        C& d = d_weights.values[i][j];
        const bool sees = back.weighs && scores.Sees(Part::FirstRow() + i, Part::FirstColumn() + j);
        d = sees ? weights.values[i][j] * (d - back.along) * head.scale : C(0);
      }
    }
    tiles.StoreFactor(d_weights);
    scores.ClearHidden(tiles);
    tiles.AddProductOfFactor(q, row, own.column, key_sums);
  }
  d_k.OfHead(own.head).Store(own.row, own.column, key_sums);
  d_v.OfHead(own.head).Store(own.row, own.column, value_sums);
}

template <typename T>
absl::StatusOr<std::unique_ptr<Kernel>> MakeAttentionGrad(const KernelSpec& spec, const Attention& a) {
  using C = Compute<T>;
  RETURN_IF_ERROR(CheckSizes(spec, a));
  const dim3 row_grid = TileGrid<C>(a, a.rows, a.depth),
             column_grid = TileGrid<C>(a, a.columns, std::max(a.depth, a.width));
  const int64_t rows = a.head_count() * a.rows;
  return MakeKernel(
      rows * sizeof(C), [=](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
        const T *const d_o = Input<T>(arguments, 0), *const o = Input<T>(arguments, 4);
        C* const along = static_cast<C*>(arguments.workspace);
        RETURN_IF_ERROR(Launch(SumAlongRows<T>, BlocksFor(rows * 32), kThreads, stream,
                               Matrix<T>(d_o, rows, a.width), Matrix<T>(o, rows, a.width), along));
        const Backward<T> backward{{d_o, a.rows, a.width},
                                   {Input<T>(arguments, 1), a.rows, a.depth},
                                   {Input<T>(arguments, 2), a.columns, a.depth},
                                   {Input<T>(arguments, 3), a.columns, a.width},
                                   Input<C>(arguments, 5),
                                   along,
                                   {a, a.mask == Attention::Mask::kNone ? nullptr : arguments.inputs[6]}};
        RETURN_IF_ERROR(Launch(QueryGradients<T>, row_grid, kTileThreads, stream, backward,
                               Results<T>(Output<T>(arguments, 0), a.rows, a.depth)));
        return Launch(KeyValueGradients<T>, column_grid, kTileThreads, stream, backward,
                      Results<T>(Output<T>(arguments, 1), a.columns, a.depth),
                      Results<T>(Output<T>(arguments, 2), a.columns, a.width));
      });
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareAttentionGrad(const KernelSpec& spec, CudaContext& context) {
  ASSIGN_OR_RETURN(const Attention a, Attention::OfGrad(spec));
  absl::StatusOr<std::unique_ptr<Kernel>> dnn = MakeDnnAttentionGrad(spec, a, context);
  if (!absl::IsUnimplemented(dnn.status())) return dnn;
  return ForAllFloats(spec, a.dtype,
                      [&](auto tag) { return MakeAttentionGrad<typename decltype(tag)::type>(spec, a); });
}

}  // namespace

void RegisterAttentionGradKernels(KernelRegistry& registry) {
  registry.Add("FusedAttentionGrad", kPipecDomain, PrepareAttentionGrad);
}

}  // namespace pipec::cuda
