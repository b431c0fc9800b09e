#include "runtime/device/cpu/kernels/onednn_element.h"

#include <cmath>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/onednn_kernel.h"

namespace pipec::cpu {
namespace {

dnnl::memory::desc Dense(const dnnl::memory::dims& dims, DType dtype = DType::kFloat32) {
  dnnl::memory::dims strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return {dims, OneDnnType(dtype), strides};
}

dnnl::eltwise_forward::primitive_desc GeluDescription(const dnnl::memory::desc& form, bool tanh,
                                                      dnnl::prop_kind kind) {
  const auto algorithm = tanh ? dnnl::algorithm::eltwise_gelu_tanh : dnnl::algorithm::eltwise_gelu_erf;
  return {{kind, algorithm, form, 0, 0}, OneDnnAttributes(), OneDnnEngine()};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeOneDnnGelu(DType dtype, int64_t n, bool tanh) {
  return CatchOneDnn([&]() -> absl::StatusOr<std::unique_ptr<Kernel>> {
    const dnnl::memory::desc form = Dense({n}, dtype);
    const auto description = GeluDescription(form, tanh, dnnl::prop_kind::forward_inference);
    RETURN_IF_ERROR(CheckImplementation(dtype, description.impl_info_str()));
    return MakeOneDnnKernel(dnnl::eltwise_forward(description), description.scratchpad_desc(),
                            {{DNNL_ARG_SRC, false, 0, form}, {DNNL_ARG_DST, true, 0, form}});
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeOneDnnGeluGrad(DType dtype, int64_t n, bool tanh) {
  return CatchOneDnn([&]() -> absl::StatusOr<std::unique_ptr<Kernel>> {
    const dnnl::memory::desc form = Dense({n}, dtype);
    const auto algorithm = tanh ? dnnl::algorithm::eltwise_gelu_tanh : dnnl::algorithm::eltwise_gelu_erf;
    const dnnl::eltwise_backward::primitive_desc description(
        {algorithm, form, form, 0, 0}, OneDnnAttributes(), OneDnnEngine(),
        GeluDescription(form, tanh, dnnl::prop_kind::forward_training));
    RETURN_IF_ERROR(CheckImplementation(dtype, description.impl_info_str()));
    return MakeOneDnnKernel(dnnl::eltwise_backward(description), description.scratchpad_desc(),
                            {{DNNL_ARG_DIFF_DST, false, 0, form},
                             {DNNL_ARG_SRC, false, 1, form},
                             {DNNL_ARG_DIFF_SRC, true, 0, form}});
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeOneDnnSoftmax(int64_t rows, int64_t length) {
  return CatchOneDnn([&] {
    const dnnl::memory::desc form = Dense({rows, length});
    const dnnl::softmax_forward::primitive_desc description({dnnl::prop_kind::forward_inference, form, 1},
                                                            OneDnnAttributes(), OneDnnEngine());
    return MakeOneDnnKernel(dnnl::softmax_forward(description), description.scratchpad_desc(),
                            {{DNNL_ARG_SRC, false, 0, form}, {DNNL_ARG_DST, true, 0, form}});
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeOneDnnLayerNormalization(int64_t rows, int64_t length,
                                                                     float epsilon, bool bias,
                                                                     bool statistics) {
  ASSIGN_OR_RETURN(
      std::unique_ptr<Kernel> kernel, CatchOneDnn([&] {
        const dnnl::memory::desc form = Dense({rows, length}), row = Dense({length}), column = Dense({rows});
        auto flags = dnnl::normalization_flags::use_scale;
        if (bias) flags = flags | dnnl::normalization_flags::use_shift;
        const auto kind = statistics ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
        const dnnl::layer_normalization_forward::primitive_desc description(
            {kind, form, column, epsilon, flags}, OneDnnAttributes(), OneDnnEngine());
        std::vector<OneDnnArgument> arguments = {
            {DNNL_ARG_SRC, false, 0, form}, {DNNL_ARG_SCALE, false, 1, row}, {DNNL_ARG_DST, true, 0, form}};
        if (bias) arguments.push_back({DNNL_ARG_SHIFT, false, 2, row});
        if (statistics) {
          arguments.push_back({DNNL_ARG_MEAN, true, 1, column});
          arguments.push_back({DNNL_ARG_VARIANCE, true, 2, column});
        }
        return MakeOneDnnKernel(dnnl::layer_normalization_forward(description), description.scratchpad_desc(),
                                std::move(arguments));
      }));
  if (!statistics) return kernel;
  // oneDNN gives the variance where ONNX wants the inverse standard deviation.
  class InvertedVariance : public Kernel {
   public:
    InvertedVariance(std::unique_ptr<Kernel> kernel, int64_t rows, float epsilon)
        : kernel_(std::move(kernel)), rows_(rows), epsilon_(epsilon) {}
    int64_t workspace_bytes() const override { return kernel_->workspace_bytes(); }
    absl::Status Launch(Stream& stream, const KernelArguments& arguments) override {
      RETURN_IF_ERROR(kernel_->Launch(stream, arguments));
      float* const variance = Output<float>(arguments, 2);
      const int64_t rows = rows_;
      const float epsilon = epsilon_;
      for (int64_t row = 0; row < rows; ++row) variance[row] = 1 / std::sqrt(variance[row] + epsilon);
      return absl::OkStatus();
    }

   private:
    const std::unique_ptr<Kernel> kernel_;
    const int64_t rows_;
    const float epsilon_;
  };
  return std::make_unique<InvertedVariance>(std::move(kernel), rows, epsilon);
}

}  // namespace pipec::cpu
