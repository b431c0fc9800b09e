// FusedAttention (Q, K, V, mask?) -> (O, log_sum_exp?), block by block (attention_blocks.h).
#include <algorithm>
#include <limits>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/attention_rows.h"
#include "runtime/device/cpu/kernels/lanes.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/kernels/vector_math.h"

namespace pipec::cpu {
namespace {

// Weights that still lack the row's factor, in place of the scores; what they must be divided by, and the logarithm.
template <typename T>
struct RowSum {
  T sum, log;
};

template <typename T>
PIPEC_INLINE RowSum<T> Weigh(T* s, int64_t seen, int64_t columns) {
  const T largest = Fold(
      seen, -std::numeric_limits<T>::infinity(), [](T a, T b) { return a < b ? b : a; },
      [=](int64_t j) { return s[j]; });
  const T sum = Sum<T>(seen, [=](int64_t j) { return s[j] = Exp(s[j] - largest); });
  std::fill(s + seen, s + columns, T{0});
  return {sum, largest + Log(sum)};
}

template <typename T>
class AttentionKernel : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Make(const KernelSpec& spec, const Attention& a) {
    auto kernel = std::make_unique<AttentionKernel>();
    kernel->a_ = a;
    kernel->has_logs_ = HasOutput(spec, 1);
    kernel->blocks_ = AttentionBlocks(a, kBlockLimits);
    ASSIGN_OR_RETURN(kernel->scores_,
                     BlockProducts::Make(spec, kernel->blocks_, [&](const AttentionBlock& block) {
                       return ScoresProduct(a, block);
                     }));
    ASSIGN_OR_RETURN(kernel->results_,
                     BlockProducts::Make(spec, kernel->blocks_, [&](const AttentionBlock& block) {
                       return ResultProduct(a, block);
                     }));
    int64_t weights = 0, rows = 0;
    for (const AttentionBlock& block : kernel->blocks_) {
      weights = std::max(weights, block.weights());
      rows = std::max(rows, block.heads * block.rows);
    }
    kernel->weight_bytes_ = AlignedBytes(weights * sizeof(T));
    kernel->sum_bytes_ = AlignedBytes(rows * sizeof(T));
    return kernel;
  }

  int64_t workspace_bytes() const override {
    return weight_bytes_ + sum_bytes_ + std::max(scores_.workspace_bytes(), results_.workspace_bytes());
  }

  absl::Status Launch(Stream& stream, const KernelArguments& arguments) override {
    const T *const q = Input<T>(arguments, 0), *const k = Input<T>(arguments, 1),
                   *const v = Input<T>(arguments, 2);
    const void* const mask = a_.mask == Attention::Mask::kNone ? nullptr : arguments.inputs[3];
    T* const o = Output<T>(arguments, 0);
    T* const logs = has_logs_ ? Output<T>(arguments, 1) : nullptr;
    auto* const workspace = static_cast<std::byte*>(arguments.workspace);
    T* const weights = reinterpret_cast<T*>(workspace);
    T* const sums = reinterpret_cast<T*>(workspace + weight_bytes_);
    void* const rest = workspace + weight_bytes_ + sum_bytes_;
    for (const AttentionBlock& block : blocks_) {
      const int64_t first_row = block.head * a_.rows + block.row;
      RETURN_IF_ERROR(scores_.Run(block, stream, q + first_row * a_.depth,
                                  k + block.head * a_.columns * a_.depth, weights, rest));
      ForEachRow(a_, block, [&](int64_t head, int64_t row, int64_t place, int64_t seen) {
        T* const s = weights + place * block.columns;
        MaskRowOf<T>(a_, mask, head, row).Apply(s, seen, static_cast<T>(a_.fill));
        const RowSum<T> sum = Weigh(s, seen, block.columns);
        if (logs) logs[head * a_.rows + row] = sum.log;
        sums[place] = sum.sum;
        if (a_.zero_rows && !std::isfinite(sum.log)) {
          std::fill(s, s + block.columns, T{0});
          sums[place] = 1;
        }
      });
      T* const o_block = o + first_row * a_.width;
      RETURN_IF_ERROR(
          results_.Run(block, stream, weights, v + block.head * a_.columns * a_.width, o_block, rest));
      ForEachRow(a_, block, [&](int64_t, int64_t, int64_t place, int64_t) {
        T* const row = o_block + place * a_.width;
        const T factor = 1 / sums[place];
#pragma GCC ivdep
        for (int64_t i = 0; i < a_.width; ++i) row[i] *= factor;
      });
    }
    return absl::OkStatus();
  }

 private:
  Attention a_;
  bool has_logs_ = false;
  std::vector<AttentionBlock> blocks_;
  BlockProducts scores_, results_;
  int64_t weight_bytes_ = 0, sum_bytes_ = 0;
};

absl::StatusOr<std::unique_ptr<Kernel>> PrepareAttention(const KernelSpec& spec) {
  ASSIGN_OR_RETURN(const Attention a, Attention::Of(spec));
  return ForFloats(spec, a.dtype, [&](auto zero) { return AttentionKernel<decltype(zero)>::Make(spec, a); });
}

}  // namespace

void RegisterAttentionKernels(KernelRegistry& registry) {
  registry.Add("FusedAttention", kPipecDomain, PrepareAttention);
}

}  // namespace pipec::cpu
