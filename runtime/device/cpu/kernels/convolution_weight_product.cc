// The gradient of a convolution's weights as one matrix product, for float32 of one group: dW = dY @ reads^T,
// with dY as (channels, windows of all samples) and reads (channels of X * taps, windows of all samples), what
// each tap of each window reads. It leaves dW as it lies: where there are few windows and large weights,
// oneDNN's convolution spends half of its time on reordering dW.
#include <algorithm>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/convolution.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/matrix_product.h"
#include "runtime/device/cpu/parallel_for.h"

namespace pipec::cpu {
namespace {

// row (samples, windows) = what tap (kd, kh, kw) reads of one channel of X, 0 outside.
void ReadTap(const Convolution& c, const float* x, int64_t channel, int64_t kd, int64_t kh, int64_t kw,
             float* row) {
  const auto& [depth, height, width] = c.windows.axes;
  const int64_t windows = c.windows.windows(), places = c.windows.places();
  std::fill_n(row, c.batch * windows, 0.0f);
  for (int64_t d = depth.FirstWindow(kd); d < depth.EndWindow(kd); ++d) {
    for (int64_t h = height.FirstWindow(kh); h < height.EndWindow(kh); ++h) {
      const int64_t line =
          (depth.Start(d) + kd * depth.dilation) * height.in + height.Start(h) + kh * height.dilation;
      const float* from = x + channel * places + line * width.in + kw * width.dilation - width.before;
      float* to = row + (d * height.out + h) * width.out;
      for (int64_t sample = 0; sample < c.batch; ++sample) {
        for (int64_t w = width.FirstWindow(kw); w < width.EndWindow(kw); ++w) to[w] = from[w * width.stride];
        from += c.x_channels * places;
        to += windows;
      }
    }
  }
}

class WeightGradientProduct : public Kernel {
 public:
  WeightGradientProduct(std::unique_ptr<Kernel> product, const Convolution& c, int dy)
      : product_(std::move(product)), c_(c), dy_(dy) {}

  int64_t workspace_bytes() const override {
    return (DyElements() + ReadsElements()) * static_cast<int64_t>(sizeof(float)) +
           product_->workspace_bytes();
  }

  absl::Status Launch(Stream& stream, const KernelArguments& arguments) override {
    auto* const dy = static_cast<float*>(arguments.workspace);
    float* const reads = dy + DyElements();
    LayOutDy(Input<float>(arguments, dy_), dy);
    LayOutReads(Input<float>(arguments, 1 - dy_), reads);
    const void* const operands[] = {dy, reads, nullptr};  // no third operand
    return product_->Launch(stream,
                            {operands, arguments.outputs, arguments.scalars, reads + ReadsElements()});
  }

 private:
  // dY (samples, channels, windows) -> (channels, samples, windows).
  void LayOutDy(const float* from, float* dy) const {
    const int64_t windows = c_.windows.windows();
    ParallelFor(c_.y_channels, Grain(1), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin * c_.batch; row < end * c_.batch; ++row) {
        const int64_t channel = row / c_.batch, sample = row % c_.batch;
        std::copy_n(from + (sample * c_.y_channels + channel) * windows, windows, dy + row * windows);
      }
    });
  }

  // X (samples, channels, places) -> (channels, taps, samples, windows).
  void LayOutReads(const float* x, float* reads) const {
    const auto& [depth, height, width] = c_.windows.axes;
    const int64_t columns = c_.batch * c_.windows.windows(), taps = c_.windows.taps();
    ParallelFor(c_.x_channels, Grain(taps),
                [&, &depth = depth, &height = height, &width = width](int64_t begin, int64_t end) {
                  float* row = reads + begin * taps * columns;
                  for (int64_t channel = begin; channel < end; ++channel) {
                    for (int64_t kd = 0; kd < depth.kernel; ++kd) {
                      for (int64_t kh = 0; kh < height.kernel; ++kh) {
                        for (int64_t kw = 0; kw < width.kernel; ++kw, row += columns)
                          ReadTap(c_, x, channel, kd, kh, kw, row);
                      }
                    }
                  }
                });
  }

  // Channels worth a thread, each of so many rows.
  int64_t Grain(int64_t rows) const {
    return std::max<int64_t>(1, 16384 / (rows * c_.batch * c_.windows.windows()));
  }
  // In whole cache lines.
  static int64_t Padded(int64_t elements) { return (elements + 15) / 16 * 16; }
  int64_t DyElements() const { return Padded(c_.y_channels * c_.batch * c_.windows.windows()); }
  int64_t ReadsElements() const {
    return Padded(c_.x_channels * c_.windows.taps() * c_.batch * c_.windows.windows());
  }

  const std::unique_ptr<Kernel> product_;
  const Convolution c_;
  const int dy_;  // which operand it is
};

}  // namespace

bool HasFewWindows(const Convolution& c) {
  return c.groups == 1 &&
         2 * c.batch * c.windows.windows() <= std::min(c.y_channels, c.x_channels * c.windows.taps());
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeWeightGradientProduct(const Convolution& c, int dy, bool add) {
  ASSIGN_OR_RETURN(std::unique_ptr<Kernel> product, MakeOneDnnProduct({.dtype = DType::kFloat32,
                                                                       .result = DType::kFloat32,
                                                                       .m = c.y_channels,
                                                                       .k = c.batch * c.windows.windows(),
                                                                       .n = c.x_channels * c.windows.taps(),
                                                                       .transpose_b = true,
                                                                       .add = add}));
  return std::make_unique<WeightGradientProduct>(std::move(product), c, dy);
}

}  // namespace pipec::cpu
