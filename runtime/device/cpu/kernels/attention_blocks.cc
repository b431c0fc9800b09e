#include "runtime/device/cpu/kernels/attention_blocks.h"

namespace pipec::cpu {
namespace {

// Every length of a block of causal rows has products of its own, made at load.
constexpr int64_t kLengths = 8;

int64_t RoundUp(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

MatrixProduct Product(const Attention& a, int64_t m, int64_t k, int64_t n) {
  MatrixProduct product;
  product.dtype = product.result = a.dtype;
  product.m = m;
  product.k = k;
  product.n = n;
  return product;
}

// Of a block's weights, transposed, and what its rows have.
MatrixProduct SumOverRows(const Attention& a, const AttentionBlock& block, int64_t width) {
  MatrixProduct product = Product(a, block.columns, block.rows, width);
  product.transpose_a = true;
  product.add = !block.first;
  return product;
}

}  // namespace

std::vector<AttentionBlock> AttentionBlocks(const Attention& attention, const BlockLimits& limits) {
  const Attention& a = attention;
  const int64_t heads = a.head_count();
  std::vector<AttentionBlock> blocks;
  const int64_t most = std::min(limits.rows, std::max(limits.least_rows, limits.weights / a.columns));
  if (a.rows <= most) {
    const int64_t group = std::clamp<int64_t>(limits.weights / (a.rows * a.columns), 1, heads);
    for (int64_t head = 0; head < heads; head += group)
      blocks.push_back({head, std::min(group, heads - head), 0, a.rows, a.columns, true});
    return blocks;
  }
  const int64_t step = RoundUp((a.columns + kLengths - 1) / kLengths, most);
  for (int64_t head = 0; head < heads; ++head) {
    for (int64_t row = (a.rows - 1) / most * most; row >= 0; row -= most) {
      const int64_t rows = std::min(most, a.rows - row);
      const int64_t columns = a.causal ? std::min(a.columns, RoundUp(row + rows, step)) : a.columns;
      blocks.push_back({head, 1, row, rows, columns, row + rows == a.rows});
    }
  }
  return blocks;
}

absl::Status BlockProducts::Run(const AttentionBlock& block, Stream& stream, const void* a, const void* b,
                                void* y, void* workspace) const {
  const void* const inputs[] = {a, b};
  void* const outputs[] = {y};
  return kernels_.at(KeyOf(block))->Launch(stream, {inputs, outputs, nullptr, workspace});
}

MatrixProduct ScoresProduct(const Attention& a, const AttentionBlock& block) {
  MatrixProduct product = Product(a, block.rows, a.depth, block.columns);
  product.transpose_b = true;
  product.alpha = a.scale;
  return product;
}

MatrixProduct ResultProduct(const Attention& a, const AttentionBlock& block) {
  return Product(a, block.rows, block.columns, a.width);
}

MatrixProduct WeightGradientProduct(const Attention& a, const AttentionBlock& block) {
  MatrixProduct product = Product(a, block.rows, a.width, block.columns);
  product.transpose_b = true;
  return product;
}

MatrixProduct QueryGradientProduct(const Attention& a, const AttentionBlock& block) {
  return Product(a, block.rows, block.columns, a.depth);
}

MatrixProduct KeyGradientProduct(const Attention& a, const AttentionBlock& block) {
  return SumOverRows(a, block, a.depth);
}

MatrixProduct ValueGradientProduct(const Attention& a, const AttentionBlock& block) {
  return SumOverRows(a, block, a.width);
}

}  // namespace pipec::cpu
