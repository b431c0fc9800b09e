// A reduction over rows that lie one after the other: results side by side, in vectors.
#pragma once

#include <algorithm>
#include <cstdint>

namespace pipec::cpu {

inline constexpr int64_t kBlockRows = 64;  // rows folded in Part before they join the Total
inline constexpr int64_t kColumns = 128;   // results of adjacent columns computed at once

// totals[c] = the fold of column c of rows `stride` apart into it, for c < columns <= kColumns.
template <typename Op, typename T>
void FoldColumns(const T* x, int64_t rows, int64_t stride, int64_t columns, typename Op::Total* totals) {
  typename Op::Part part[kColumns];
  for (int64_t row = 0; row < rows;) {
    const int64_t end = std::min(row + kBlockRows, rows);
    for (int64_t c = 0; c < columns; ++c) part[c] = Op::Load(x[row * stride + c]);
    for (++row; row < end; ++row) {
      const T* from = x + row * stride;
      for (int64_t c = 0; c < columns; ++c) part[c] = Op::Combine(part[c], Op::Load(from[c]));
    }
    for (int64_t c = 0; c < columns; ++c) {
      totals[c] = Op::Combine(totals[c], static_cast<typename Op::Total>(part[c]));
    }
  }
}

}  // namespace pipec::cpu
