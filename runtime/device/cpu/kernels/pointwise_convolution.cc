// Convolutions of one tap and stride 1 in float32: a matrix product per sample, W (M,C) @ X (C, places), that
// reads and writes ONNX's layout as it lies. oneDNN's convolutions want other layouts, and reordering
// operands and result costs about as much as such a product itself.
#include <algorithm>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/convolution.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/matrix_product.h"
#include "runtime/device/cpu/parallel_for.h"

namespace pipec::cpu {

namespace {

// Writes the bias to Y, if there is one, then lets the product add itself.
class PointwiseConvolution : public Kernel {
 public:
  PointwiseConvolution(std::unique_ptr<Kernel> product, const Convolution& c, bool bias)
      : product_(std::move(product)),
        rows_(c.batch * c.y_channels),
        channels_(c.y_channels),
        places_(c.windows.places()),
        bias_(bias) {}

  int64_t workspace_bytes() const override { return product_->workspace_bytes(); }

  absl::Status Launch(Stream& stream, const KernelArguments& arguments) override {
    if (bias_) {
      const float* const bias = Input<float>(arguments, 2);
      float* const y = Output<float>(arguments, 0);
      ParallelFor(rows_, std::max<int64_t>(1, 16384 / places_), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row)
          std::fill_n(y + row * places_, places_, bias[row % channels_]);
      });
    }
    const void* const operands[] = {arguments.inputs[1], arguments.inputs[0], nullptr};  // no third operand
    return product_->Launch(stream, {operands, arguments.outputs, arguments.scalars, arguments.workspace});
  }

 private:
  const std::unique_ptr<Kernel> product_;
  const int64_t rows_, channels_, places_;
  const bool bias_;
};

}  // namespace

bool IsPointwise(const Convolution& c) {
  return c.groups == 1 &&
         std::all_of(c.windows.axes.begin(), c.windows.axes.end(), [](const WindowAxis& axis) {
           return axis.kernel == 1 && axis.stride == 1 && axis.before == 0 && axis.in == axis.out;
         });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakePointwiseConvolution(const Convolution& c, bool bias) {
  const MatrixProduct product{.dtype = DType::kFloat32,
                              .result = DType::kFloat32,
                              .a_batch = {1},
                              .b_batch = {c.batch},
                              .y_batch = {c.batch},
                              .m = c.y_channels,
                              .k = c.x_channels,
                              .n = c.windows.places(),
                              .add = bias};
  ASSIGN_OR_RETURN(std::unique_ptr<Kernel> made, MakeOneDnnProduct(product));
  return std::make_unique<PointwiseConvolution>(std::move(made), c, bias);
}

}  // namespace pipec::cpu
