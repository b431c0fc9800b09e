// FusedAttentionGrad (dO, Q, K, V, O, log_sum_exp, mask?) -> (dQ, dK, dV), block by block
// (attention_blocks.h). With weights P = exp(s - log_sum_exp): dV = P^T dO, ds = scale * P * (dO V^T - sum
// over a row of dO * O), dQ = ds K, dK = ds^T Q (Dao et al., appendix B.2).
#include <algorithm>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/attention_rows.h"
#include "runtime/device/cpu/kernels/lanes.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/kernels/vector_math.h"

namespace pipec::cpu {
namespace {

template <typename T>
class AttentionGradKernel : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Make(const KernelSpec& spec, const Attention& a) {
    auto kernel = std::make_unique<AttentionGradKernel>();
    kernel->a_ = a;
    kernel->blocks_ = AttentionBlocks(a, kBlockLimits);
    const auto make = [&](BlockProducts& products, auto form) -> absl::Status {
      ASSIGN_OR_RETURN(products, BlockProducts::Make(spec, kernel->blocks_, form));
      kernel->product_bytes_ = std::max(kernel->product_bytes_, products.workspace_bytes());
      return absl::OkStatus();
    };
    using Block = AttentionBlock;
    RETURN_IF_ERROR(make(kernel->scores_, [&](const Block& block) { return ScoresProduct(a, block); }));
    RETURN_IF_ERROR(
        make(kernel->d_weights_, [&](const Block& block) { return WeightGradientProduct(a, block); }));
    RETURN_IF_ERROR(
        make(kernel->d_values_, [&](const Block& block) { return ValueGradientProduct(a, block); }));
    RETURN_IF_ERROR(
        make(kernel->d_queries_, [&](const Block& block) { return QueryGradientProduct(a, block); }));
    RETURN_IF_ERROR(make(kernel->d_keys_, [&](const Block& block) { return KeyGradientProduct(a, block); }));
    int64_t weights = 0;
    for (const AttentionBlock& block : kernel->blocks_) weights = std::max(weights, block.weights());
    kernel->weight_bytes_ = AlignedBytes(weights * sizeof(T));
    return kernel;
  }

  int64_t workspace_bytes() const override { return 2 * weight_bytes_ + product_bytes_; }

  absl::Status Launch(Stream& stream, const KernelArguments& arguments) override {
    const T *const d_o = Input<T>(arguments, 0), *const q = Input<T>(arguments, 1),
                   *const k = Input<T>(arguments, 2), *const v = Input<T>(arguments, 3),
                   *const o = Input<T>(arguments, 4), *const logs = Input<T>(arguments, 5);
    const void* const mask = a_.mask == Attention::Mask::kNone ? nullptr : arguments.inputs[6];
    T *const dq = Output<T>(arguments, 0), *const dk = Output<T>(arguments, 1),
             *const dv = Output<T>(arguments, 2);
    auto* const workspace = static_cast<std::byte*>(arguments.workspace);
    T* const weights = reinterpret_cast<T*>(workspace);
    T* const d_scores = reinterpret_cast<T*>(workspace + weight_bytes_);
    void* const rest = workspace + 2 * weight_bytes_;
    for (const AttentionBlock& block : blocks_) {
      const int64_t row = block.head * a_.rows + block.row, column = block.head * a_.columns;
      RETURN_IF_ERROR(scores_.Run(block, stream, q + row * a_.depth, k + column * a_.depth, weights, rest));
      RETURN_IF_ERROR(
          d_weights_.Run(block, stream, d_o + row * a_.width, v + column * a_.width, d_scores, rest));
      ForEachRow(a_, block, [&](int64_t head, int64_t i, int64_t place, int64_t seen) {
        const int64_t at = (head * a_.rows + i) * a_.width;
        T* const p = weights + place * block.columns;
        MaskRowOf<T>(a_, mask, head, i).Apply(p, seen, static_cast<T>(a_.fill));
        const T along = Sum<T>(a_.width, [=](int64_t e) { return d_o[at + e] * o[at + e]; });
        BackThroughRow(p, d_scores + place * block.columns, logs[head * a_.rows + i], along, seen,
                       block.columns);
        MaskRowOf<T>(a_, mask, head, i).Clear(d_scores + place * block.columns, seen);
      });
      RETURN_IF_ERROR(
          d_values_.Run(block, stream, weights, d_o + row * a_.width, dv + column * a_.width, rest));
      RETURN_IF_ERROR(
          d_queries_.Run(block, stream, d_scores, k + column * a_.depth, dq + row * a_.depth, rest));
      RETURN_IF_ERROR(d_keys_.Run(block, stream, d_scores, q + row * a_.depth, dk + column * a_.depth, rest));
    }
    return absl::OkStatus();
  }

 private:
  // p: scores, then weights. ds: the gradient of the weights, then of the scores.
  void BackThroughRow(T* p, T* ds, T log, T along, int64_t seen, int64_t columns) const {
    if (a_.zero_rows && !std::isfinite(log)) seen = 0;
    const T scale = static_cast<T>(a_.scale);
#pragma GCC ivdep
    for (int64_t j = 0; j < seen; ++j) {
      p[j] = Exp(p[j] - log);
      ds[j] = p[j] * (ds[j] - along) * scale;
    }
    std::fill(p + seen, p + columns, T{0});
    std::fill(ds + seen, ds + columns, T{0});
  }

  Attention a_;
  std::vector<AttentionBlock> blocks_;
  BlockProducts scores_, d_weights_, d_values_, d_queries_, d_keys_;
  int64_t weight_bytes_ = 0, product_bytes_ = 0;
};

absl::StatusOr<std::unique_ptr<Kernel>> PrepareAttentionGrad(const KernelSpec& spec) {
  ASSIGN_OR_RETURN(const Attention a, Attention::OfGrad(spec));
  return ForFloats(spec, a.dtype,
                   [&](auto zero) { return AttentionGradKernel<decltype(zero)>::Make(spec, a); });
}

}  // namespace

void RegisterAttentionGradKernels(KernelRegistry& registry) {
  registry.Add("FusedAttentionGrad", kPipecDomain, PrepareAttentionGrad);
}

}  // namespace pipec::cpu
