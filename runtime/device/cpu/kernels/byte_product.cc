// Products of integers that are differences of bytes, as floats. An element is at most 255 in size, so a sum of
// up to 256 products is below 2^24 and float32 holds it, and every sum on the way to it, exactly: oneDNN's
// float32 products multiply blocks of that depth, and what the blocks give is added in int32.
#include <algorithm>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/element_kernel.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/matrix_product.h"

namespace pipec::cpu {
namespace {

constexpr int64_t kBlock = 256;  // 256 * 255 * 255 < 2^24

// A (rows, depth), B (depth, columns) -> Y (rows, columns). The workspace holds the operands as floats, A
// transposed so that a block of its columns lies together, one block's product, and what that takes.
class ByteProduct : public Kernel {
 public:
  // `block`, `rest`: the float products of depth 256 and of depth % 256; null if there is none.
  ByteProduct(const MatrixProduct& p, std::unique_ptr<Kernel> block, std::unique_ptr<Kernel> rest)
      : rows_(p.m), depth_(p.k), columns_(p.n), block_(std::move(block)), rest_(std::move(rest)) {}

  int64_t workspace_bytes() const override {
    return Bytes(depth_ * rows_) + Bytes(depth_ * columns_) + Bytes(rows_ * columns_) +
           std::max(block_ ? block_->workspace_bytes() : 0, rest_ ? rest_->workspace_bytes() : 0);
  }

  absl::Status Launch(Stream& stream, const KernelArguments& arguments) override {
    auto* workspace = static_cast<std::byte*>(arguments.workspace);
    const auto take = [&](int64_t elements) {
      return reinterpret_cast<float*>(std::exchange(workspace, workspace + Bytes(elements)));
    };
    float *const a = take(depth_ * rows_), *const b = take(depth_ * columns_),
                 *const part = take(rows_ * columns_);
    Transpose(Input<int32_t>(arguments, 0), a);
    const int32_t* const from = Input<int32_t>(arguments, 1);
    ParallelFor(depth_ * columns_, kElementGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) b[i] = static_cast<float>(from[i]);
    });
    int32_t* const y = Output<int32_t>(arguments, 0);
    for (int64_t k = 0; k < depth_; k += kBlock) {
      const void* const inputs[] = {a + k * rows_, b + k * columns_};
      void* const outputs[] = {part};
      Kernel& product = k + kBlock <= depth_ ? *block_ : *rest_;
      RETURN_IF_ERROR(product.Launch(stream, {inputs, outputs, arguments.scalars, workspace}));
      ParallelFor(rows_ * columns_, kElementGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const auto sum = static_cast<uint32_t>(static_cast<int32_t>(part[i]));
          y[i] = static_cast<int32_t>(k == 0 ? sum : static_cast<uint32_t>(y[i]) + sum);
        }
      });
    }
    return absl::OkStatus();
  }

 private:
  static int64_t Bytes(int64_t elements) { return (elements * 4 + 63) / 64 * 64; }

  // A strip of rows at a time: its part of a row of the result is a line of the cache.
  void Transpose(const int32_t* from, float* to) const {
    constexpr int64_t kStrip = 16;
    const int64_t grain = std::max<int64_t>(1, kElementGrain / std::max<int64_t>(1, kStrip * depth_));
    ParallelFor((rows_ + kStrip - 1) / kStrip, grain, [&](int64_t begin, int64_t end) {
      for (int64_t strip = begin; strip < end; ++strip) {
        const int64_t first = strip * kStrip, last = std::min(rows_, first + kStrip);
        for (int64_t k = 0; k < depth_; ++k) {
          for (int64_t row = first; row < last; ++row) {
            to[k * rows_ + row] = static_cast<float>(from[row * depth_ + k]);
          }
        }
      }
    });
  }

  const int64_t rows_, depth_, columns_;
  const std::unique_ptr<Kernel> block_, rest_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeByteProduct(const KernelSpec& spec,
                                                        const MatrixProduct& product) {
  const MatrixProduct p = Simplify(product);
  const bool is_one = p.batches() == 1 && !p.transpose_a && !p.transpose_b && p.alpha == 1 && !p.add;
  if (!is_one || p.m == 0 || p.k == 0 || p.n == 0) return MakeProduct(spec, product);
  MatrixProduct floats{.dtype = DType::kFloat32,
                       .result = DType::kFloat32,
                       .m = p.m,
                       .k = kBlock,
                       .n = p.n,
                       .transpose_a = true};
  std::unique_ptr<Kernel> block, rest;
  if (p.k >= kBlock) {
    ASSIGN_OR_RETURN(block, MakeOneDnnProduct(floats));
  }
  floats.k = p.k % kBlock;
  if (floats.k > 0) {
    ASSIGN_OR_RETURN(rest, MakeOneDnnProduct(floats));
  }
  return std::make_unique<ByteProduct>(p, std::move(block), std::move(rest));
}

}  // namespace pipec::cpu
