// Conv and ConvTranspose (X, W, bias?) -> (Y) and their gradients by cuDNN: all six compute one of three operands
// from the two others (dnn_convolution.h). cuDNN pads both ends alike and lets the shape of the places follow from
// that; where ONNX's windows are others, the places are copied into the workspace, as a frame that the windows fill
// without padding.
#include "runtime/device/operands/convolution.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cuda/kernels/dnn_convolution.h"
#include "runtime/device/cuda/kernels/make_kernel.h"
#include "runtime/device/cuda/kernels/moved_copy.h"
#include "runtime/device/cuda/kernels/register.h"

namespace pipec::cuda {
namespace {

constexpr int64_t kAlignment = 256;  // of cuDNN's workspace

// Whether padding of `before` on both ends gives these windows.
bool IsSymmetric(const WindowAxis& axis) {
  const int64_t reach = (axis.kernel - 1) * axis.dilation + 1, room = axis.in + 2 * axis.before - reach;
  return room >= 0 && room / axis.stride + 1 == axis.out;
}

// The frame that the windows fill, where cuDNN cannot see the places as they lie. `product` then is over the frame.
class Frame {
 public:
  explicit Frame(SlidingProduct& product) : dtype_(product.dtype) {
    std::array<WindowAxis, 3>& axes = product.axes.axes;
    needed_ = !std::all_of(axes.begin(), axes.end(), IsSymmetric);
    if (!needed_) return;
    enter_.batch = leave_.batch = product.batch;
    enter_.channels = leave_.channels = product.groups * product.place_channels;
    for (int i = 0; i < 3; ++i) {
      WindowAxis& axis = axes[i];
      leave_.to[i] = enter_.from[i] = axis.in;
      leave_.shift[i] = axis.before;
      enter_.shift[i] = -axis.before;
      axis.in = (axis.out - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1;
      axis.before = axis.after = 0;
      leave_.from[i] = enter_.to[i] = axis.in;
    }
    bytes_ = product.batch * enter_.channels * product.axes.places() * SizeOf(dtype_);
  }

  bool needed() const { return needed_; }
  int64_t bytes() const { return bytes_; }
  absl::Status Enter(cudaStream_t stream, const void* places, void* frame) const {
    return CopyMoved(stream, dtype_, enter_, places, nullptr, frame);
  }
  absl::Status Leave(cudaStream_t stream, const void* frame, const void* bias, void* places) const {
    return CopyMoved(stream, dtype_, leave_, frame, bias, places);
  }

 private:
  DType dtype_;
  bool needed_;
  int64_t bytes_ = 0;
  MovedPlanes enter_{}, leave_{};
};

// Which operands are which; the result is output 0.
struct Roles {
  Computed computed;
  int places = -1, weights = -1, windows = -1;  // inputs, -1: the result
  int bias = -1;                                // an input, -1: none
};

absl::StatusOr<std::unique_ptr<Kernel>> MakeConvolution(const KernelSpec& spec, SlidingProduct product,
                                                        const Roles& roles, CudaContext& context) {
  const Windows& axes = product.axes;
  const bool by_windows = roles.computed == Computed::kWindows;
  const int64_t batch = product.batch;
  const int64_t channels = product.groups * (by_windows ? product.window_channels : product.place_channels);
  const int64_t elements = by_windows ? axes.windows() : axes.places();
  const DType dtype = product.dtype;
  const bool accumulates = spec.accumulates;
  const int64_t dims[] = {batch,          product.groups, product.place_channels, product.window_channels,
                          axes.windows(), axes.places()};
  if (std::find(std::begin(dims), std::end(dims), 0) != std::end(dims)) {
    // Nothing is added to nothing, or to the bias.
    const int64_t weights = NumElements(spec.outputs[0].type.shape);
    return MakeKernel(0, [=](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
      if (roles.computed == Computed::kWeights && accumulates && !arguments.first_microbatch) return absl::OkStatus();
      if (roles.computed == Computed::kWeights)
        return FillChannels(stream, dtype, nullptr, arguments.outputs[0], 1, 1, weights);
      return FillChannels(stream, dtype, roles.bias < 0 ? nullptr : arguments.inputs[roles.bias],
                          arguments.outputs[0], batch, channels, elements);
    });
  }
  const Frame frame(product);
  ASSIGN_OR_RETURN(std::shared_ptr<const DnnConvolution> dnn,
                   DnnConvolution::Create(spec, product, roles.computed, context));
  const int64_t frame_bytes = (frame.bytes() + kAlignment - 1) / kAlignment * kAlignment;
  return MakeKernel(frame_bytes + dnn->workspace_bytes(),
                    [=](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
                      const auto operand = [&](int role) {
                        return role < 0 ? arguments.outputs[0] : const_cast<void*>(arguments.inputs[role]);
                      };
                      const void* const bias = roles.bias < 0 ? nullptr : arguments.inputs[roles.bias];
                      auto* const workspace = static_cast<std::byte*>(arguments.workspace);
                      void* const places = frame.needed() ? workspace : operand(roles.places);
                      void* const computed =
                          roles.computed == Computed::kPlaces ? places : arguments.outputs[0];
                      if (frame.needed() && roles.computed != Computed::kPlaces) {
                        RETURN_IF_ERROR(frame.Enter(stream, operand(roles.places), places));
                      }
                      if (bias != nullptr) {
                        const int64_t filled = computed == workspace ? product.axes.places() : elements;
                        RETURN_IF_ERROR(FillChannels(stream, dtype, bias, computed, batch, channels, filled));
                      }
                      RETURN_IF_ERROR(dnn->Run(stream, places, operand(roles.weights), operand(roles.windows),
                                               bias != nullptr || (accumulates && !arguments.first_microbatch),
                                               workspace + frame_bytes));
                      if (!frame.needed() || roles.computed != Computed::kPlaces) return absl::OkStatus();
                      return frame.Leave(stream, places, bias, arguments.outputs[0]);
                    });
}

SlidingProduct ProductOf(const Convolution& c, DType dtype, bool transposed) {
  return {c.windows,
          c.batch,
          c.groups,
          transposed ? c.y_channels : c.x_channels,
          transposed ? c.x_channels : c.y_channels,
          dtype};
}

template <bool kTransposed>
absl::StatusOr<std::unique_ptr<Kernel>> PrepareForward(const KernelSpec& spec, CudaContext& context) {
  RETURN_IF_ERROR(CheckOperands(spec, {2, 3}));
  const TensorType &x = spec.inputs[0].type, &w = spec.inputs[1].type, &y = spec.outputs[0].type;
  RETURN_IF_ERROR(CheckInputType(spec, 1, x.dtype));
  ASSIGN_OR_RETURN(const Convolution c,
                   ReadConvolution(spec, x.shape, w.shape, y.shape, kTransposed));
  RETURN_IF_ERROR(CheckInputElements(spec, 2, x.dtype, c.groups * c.y_channels));
  RETURN_IF_ERROR(CheckOutput(spec, 0, {x.dtype, y.shape}));
  Roles roles = kTransposed ? Roles{Computed::kPlaces, -1, 1, 0} : Roles{Computed::kWindows, 0, 1, -1};
  if (Has(spec, 2)) roles.bias = 2;
  return MakeConvolution(spec, ProductOf(c, x.dtype, kTransposed), roles, context);
}

// (dY, W) -> (dX) or (dY, X) -> (dW); the attribute `shape` is the result's.
template <bool kTransposed, bool kWeights>
absl::StatusOr<std::unique_ptr<Kernel>> PrepareGradient(const KernelSpec& spec, CudaContext& context) {
  RETURN_IF_ERROR(CheckOperands(spec, {2, 2}));
  const TensorType &dy = spec.inputs[0].type, &other = spec.inputs[1].type;
  RETURN_IF_ERROR(CheckInputType(spec, 1, dy.dtype));
  const std::vector<int64_t> dims = spec.attributes.Ints("shape");
  const Shape result(dims.begin(), dims.end());
  RETURN_IF_ERROR(CheckOutput(spec, 0, {dy.dtype, result}));
  ASSIGN_OR_RETURN(const Convolution c,
                   ReadConvolution(spec, kWeights ? other.shape : result,
                                        kWeights ? result : other.shape, dy.shape, kTransposed));
  Roles roles;
  if (kWeights) {
    roles = {Computed::kWeights, kTransposed ? 0 : 1, -1, kTransposed ? 1 : 0};
  } else {
    roles = kTransposed ? Roles{Computed::kWindows, 0, 1, -1} : Roles{Computed::kPlaces, -1, 1, 0};
  }
  return MakeConvolution(spec, ProductOf(c, dy.dtype, kTransposed), roles, context);
}

}  // namespace

void RegisterConvolutionKernels(KernelRegistry& registry) {
  registry.Add("Conv", "", PrepareForward<false>);
  registry.Add("ConvTranspose", "", PrepareForward<true>);
  registry.Add("ConvInputGrad", kPipecDomain, PrepareGradient<false, false>);
  registry.Add("ConvWeightGrad", kPipecDomain, PrepareGradient<false, true>, /*adds=*/true);
  registry.Add("ConvTransposeInputGrad", kPipecDomain, PrepareGradient<true, false>);
  registry.Add("ConvTransposeWeightGrad", kPipecDomain, PrepareGradient<true, true>, /*adds=*/true);
}

}  // namespace pipec::cuda
