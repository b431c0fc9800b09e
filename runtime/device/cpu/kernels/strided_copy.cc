#include "runtime/device/cpu/kernels/strided_copy.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "runtime/device/cpu/kernels/transpose_block.h"
#include "runtime/device/cpu/kernels/typed.h"
#include "runtime/device/cpu/parallel_for.h"

namespace pipec::cpu {
namespace {

constexpr int64_t kBytesGrain = 65536;  // worth a thread

}  // namespace

StridedCopy::StridedCopy(int64_t element_bytes, absl::Span<const int64_t> shape,
                         absl::Span<const int64_t> from_strides, absl::Span<const int64_t> to_strides)
    : element_bytes_(element_bytes) {
  std::array<Axis, kCopyRank> axes;
  int rank = 0;
  rows_ = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    if (shape[i] == 0) rows_ = 0;
    axes[rank++] = {shape[i], from_strides[i] * element_bytes, to_strides[i] * element_bytes};
  }
  if (rows_ == 0) return;
  // Insertion sort: std::stable_sort takes memory.
  for (int i = 1; i < rank; ++i) {
    for (int k = i; k > 0 && std::abs(axes[k - 1].to) < std::abs(axes[k].to); --k)
      std::swap(axes[k - 1], axes[k]);
  }
  for (int i = 0; i < rank; ++i) {
    const Axis& axis = axes[i];
    if (outer_rank_ > 0) {
      Axis& last = outer_[outer_rank_ - 1];
      if (last.from == axis.from * axis.size && last.to == axis.to * axis.size) {
        last = {last.size * axis.size, axis.from, axis.to};
        continue;
      }
    }
    outer_[outer_rank_++] = axis;
  }

  row_ = outer_rank_ > 0 ? outer_[--outer_rank_] : Axis{1, element_bytes, element_bytes};
  if (row_.to == element_bytes && row_.from == element_bytes) {
    inner_ = Inner::kBytes;
    row_.size *= element_bytes;
  } else if (row_.to == element_bytes && row_.from == 0) {
    inner_ = Inner::kRepeated;
  } else {
    inner_ = Inner::kStrided;
    for (int i = outer_rank_ - 1; i >= 0 && row_.to == element_bytes; --i) {
      if (outer_[i].from != element_bytes) continue;
      inner_ = Inner::kTransposed;
      from_row_ = outer_[i];
      std::copy(outer_.begin() + i + 1, outer_.begin() + outer_rank_, outer_.begin() + i);
      --outer_rank_;
      break;
    }
  }
  if (inner_ == Inner::kTransposed) {
    // One strip of kTransposeBlock elements of from_row_ is a row.
    rows_ = (from_row_.size + kTransposeBlock - 1) / kTransposeBlock;
  }
  for (int i = 0; i < outer_rank_; ++i) rows_ *= outer_[i].size;
}

// f(row's byte offset in from, in to) for rows [begin, end) of the outer axes.
template <typename F>
void StridedCopy::ForEachRow(int64_t begin, int64_t end, F f) const {
  std::array<int64_t, kCopyRank> at{};
  int64_t from = 0, to = 0, rest = begin;
  for (int axis = outer_rank_ - 1; axis >= 0; --axis) {
    at[axis] = rest % outer_[axis].size;
    rest /= outer_[axis].size;
    from += at[axis] * outer_[axis].from;
    to += at[axis] * outer_[axis].to;
  }
  for (int64_t row = begin; row < end; ++row) {
    f(from, to);
    for (int axis = outer_rank_ - 1; axis >= 0; --axis) {
      from += outer_[axis].from;
      to += outer_[axis].to;
      if (++at[axis] < outer_[axis].size) break;
      from -= outer_[axis].size * outer_[axis].from;
      to -= outer_[axis].size * outer_[axis].to;
      at[axis] = 0;
    }
  }
}

template <typename T>
void StridedCopy::RunTyped(const std::byte* from, std::byte* to) const {
  const Axis row = row_;
  const int64_t grain = std::max<int64_t>(1, kBytesGrain / (row.size * element_bytes_));
  if (inner_ == Inner::kTransposed) {
    const Axis across = from_row_;
    const int64_t strips = (across.size + kTransposeBlock - 1) / kTransposeBlock;
    ParallelFor(rows_, std::max<int64_t>(1, grain / kTransposeBlock), [&](int64_t begin, int64_t end) {
      while (begin < end) {
        // A run of strips of one place of the outer axes.
        const int64_t outer = begin / strips, strip = begin % strips;
        const int64_t stop = std::min(end, (outer + 1) * strips);
        ForEachRow(outer, outer + 1, [&](int64_t from_offset, int64_t to_offset) {
          const int64_t first = strip * kTransposeBlock;
          const int64_t last = std::min(across.size, (strip + stop - begin) * kTransposeBlock);
          TransposeStrips<T>(from + from_offset + first * across.from, to + to_offset + first * across.to,
                             last - first, row.size, row.from, across.to);
        });
        begin = stop;
      }
    });
    return;
  }
  ParallelFor(rows_, grain, [&](int64_t begin, int64_t end) {
    ForEachRow(begin, end, [&](int64_t from_offset, int64_t to_offset) {
      const std::byte* source = from + from_offset;
      std::byte* target = to + to_offset;
      if (inner_ == Inner::kRepeated) {
        std::fill_n(reinterpret_cast<T*>(target), row.size, *reinterpret_cast<const T*>(source));
        return;
      }
      for (int64_t i = 0; i < row.size; ++i) {
        *reinterpret_cast<T*>(target + i * row.to) = *reinterpret_cast<const T*>(source + i * row.from);
      }
    });
  });
}

void StridedCopy::Run(const void* from, void* to) const {
  const auto* source = static_cast<const std::byte*>(from);
  auto* target = static_cast<std::byte*>(to);
  if (rows_ == 0) return;
  if (inner_ == Inner::kBytes && rows_ == 1) {
    ParallelFor(row_.size, kBytesGrain, [&](int64_t begin, int64_t end) {
      std::memcpy(target + begin, source + begin, end - begin);
    });
    return;
  }
  if (inner_ == Inner::kBytes) {
    ParallelFor(rows_, std::max<int64_t>(1, kBytesGrain / row_.size), [&](int64_t begin, int64_t end) {
      ForEachRow(begin, end, [&](int64_t from_offset, int64_t to_offset) {
        std::memcpy(target + to_offset, source + from_offset, row_.size);
      });
    });
    return;
  }
  ForSize<bool>(element_bytes_, [&](auto t) {
    RunTyped<typename decltype(t)::type>(source, target);
    return true;
  });
}

}  // namespace pipec::cpu
