// The CPU's attention goes block by block: some rows of one head, or all rows of some heads, so many that their weights
// fit in a cache. Of a causal head the later columns of a block are left out. Which blocks there are depends on the
// shapes alone, so sums over rows (dK, dV) have one order.
//
// After Dao et al., "FlashAttention" (NeurIPS 2022): weights live for a block only, the way back computes them
// again from the logarithm of each row's sum. Here a block has whole rows, so that no sum is corrected later, and
// its products are those of matrices.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/matrix_product.h"
#include "runtime/device/device.h"
#include "runtime/device/operands/attention.h"

namespace pipec::cpu {

struct AttentionBlock {
  int64_t head, heads;  // these heads
  int64_t row, rows;    // these rows of each; all of them if heads > 1
  int64_t columns;      // the first so many; those that no row sees are left out
  bool first;           // of its heads: others add to the dK and dV that it wrote, and to no more columns

  int64_t weights() const { return heads * rows * columns; }
  bool operator==(const AttentionBlock&) const = default;
};

struct BlockLimits {
  int64_t rows;     // of a block, unless all rows are fewer
  int64_t weights;  // of a block, if that leaves it `least_rows`
  int64_t least_rows;
};

// Head after head, each from its last rows to its first.
std::vector<AttentionBlock> AttentionBlocks(const Attention& attention, const BlockLimits& limits);

// One product of every block: those of one shape share a kernel.
class BlockProducts {
 public:
  // form(block): a MatrixProduct without batch, the same for blocks of the same shape.
  template <typename FormOf>
  static absl::StatusOr<BlockProducts> Make(const KernelSpec& spec, const std::vector<AttentionBlock>& blocks,
                                            const FormOf& form) {
    BlockProducts products;
    for (const AttentionBlock& block : blocks) {
      std::unique_ptr<Kernel>& kernel = products.kernels_[KeyOf(block)];
      if (kernel) continue;
      MatrixProduct product = form(block);
      product.a_batch = product.b_batch = product.y_batch = {block.heads};
      ASSIGN_OR_RETURN(kernel, MakeProduct(spec, product));
      products.workspace_bytes_ = std::max(products.workspace_bytes_, kernel->workspace_bytes());
    }
    return products;
  }

  int64_t workspace_bytes() const { return workspace_bytes_; }

  absl::Status Run(const AttentionBlock& block, Stream& stream, const void* a, const void* b, void* y,
                   void* workspace) const;

 private:
  using Key = std::tuple<int64_t, int64_t, int64_t, bool>;
  static Key KeyOf(const AttentionBlock& block) {
    return {block.heads, block.rows, block.columns, block.first};
  }

  std::map<Key, std::unique_ptr<Kernel>> kernels_;
  int64_t workspace_bytes_ = 0;
};

// The five products.
MatrixProduct ScoresProduct(const Attention& a, const AttentionBlock& block);          // Q K^T
MatrixProduct ResultProduct(const Attention& a, const AttentionBlock& block);          // P V
MatrixProduct WeightGradientProduct(const Attention& a, const AttentionBlock& block);  // dO V^T
MatrixProduct QueryGradientProduct(const Attention& a, const AttentionBlock& block);   // ds K
MatrixProduct KeyGradientProduct(const Attention& a, const AttentionBlock& block);     // ds^T Q
MatrixProduct ValueGradientProduct(const Attention& a, const AttentionBlock& block);   // P^T dO

}  // namespace pipec::cpu
