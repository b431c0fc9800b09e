// Convolutions of float32, bfloat16 and float16, summed in float32, by oneDNN
// (developer guide, "Convolution"). The
// primitive chooses the layouts that it is fast in; operands and result are
// reordered from and to ONNX's through the workspace where those differ.
#include <array>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/convolution.h"
#include "runtime/device/cpu/kernels/onednn_kernel.h"

namespace pipec::cpu {
namespace {

using Dims = dnnl::memory::dims;

// Everything that describes one convolution to oneDNN.
struct Description {
  Dims x, w, y, w_strides, stride, dilation, before, after;
  DType dtype = DType::kFloat32;

  dnnl::memory::desc Any(const Dims &dims) const {
    return {dims, OneDnnType(dtype), dnnl::memory::format_tag::any};
  }
  dnnl::memory::desc Plain(const Dims &dims) const {
    Dims strides(dims.size(), 1);
    for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
    return {dims, OneDnnType(dtype), strides};
  }
  dnnl::memory::desc Weights() const { return {w, OneDnnType(dtype), w_strides}; }
};

Description Describe(const Convolution &c, bool transposed) {
  Description d{
      {c.batch, c.groups * c.x_channels}, {}, {c.batch, c.groups * c.y_channels}, {}, {}, {}, {}, {}};
  d.w = {c.groups, c.y_channels, c.x_channels};
  const int64_t taps = c.windows.taps(), matrix = c.y_channels * c.x_channels * taps;
  d.w_strides =
      transposed ? Dims{matrix, taps, c.y_channels * taps} : Dims{matrix, c.x_channels * taps, taps};
  int64_t step = taps;
  for (int i = 3 - c.windows.rank; i < 3; ++i) {
    const WindowAxis &axis = c.windows.axes[i];
    d.x.push_back(transposed ? axis.out : axis.in);
    d.y.push_back(transposed ? axis.in : axis.out);
    d.w.push_back(axis.kernel);
    d.w_strides.push_back(step /= axis.kernel);
    d.stride.push_back(axis.stride);
    d.dilation.push_back(axis.dilation - 1);
    d.before.push_back(axis.before);
    // What is left at the end when the last window ends counts as padding, be
    // it negative.
    const auto reach = (axis.out - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1;
    d.after.push_back(reach - axis.in - axis.before);
  }
  if (c.groups == 1) {
    d.w.erase(d.w.begin());
    d.w_strides.erase(d.w_strides.begin());
  }
  return d;
}

// With `add`, to what lies there.
std::unique_ptr<Kernel> MakeReorder(const dnnl::memory::desc &from, const dnnl::memory::desc &to, bool add) {
  dnnl::primitive_attr attributes = OneDnnAttributes();
  if (add) {
    dnnl::post_ops sum;
    sum.append_sum(1);
    attributes.set_post_ops(sum);
  }
  const dnnl::reorder::primitive_desc description(OneDnnEngine(), from, OneDnnEngine(), to, attributes);
  return MakeOneDnnKernel(dnnl::reorder(description), description.scratchpad_desc(),
                          {{DNNL_ARG_FROM, false, 0, from}, {DNNL_ARG_TO, true, 0, to}});
}

// The layout that a tensor has, and the one that the primitive wants.
struct Layouts {
  dnnl::memory::desc own, wanted;
};

// (a, b, bias?) -> (result): X, W and Y, or what a gradient has in their
// places. A null reorder: the layouts agree. With `add`, what is made in the
// workspace is added to the result, whatever the layouts.
class ReorderedConvolution : public Kernel {
 public:
  ReorderedConvolution(std::unique_ptr<Kernel> main, const Layouts &a, const Layouts &b,
                       const Layouts &result, bool has_bias, bool add = false)
      : main_(std::move(main)), has_bias_(has_bias) {
    const auto place = [this, add](int k, const Layouts &layouts, bool to) {
      const auto &[own, wanted] = layouts;
      const bool adds = add && !to;
      if (own == wanted && !adds) return;
      reorders_[k] = to ? MakeReorder(own, wanted, false) : MakeReorder(wanted, own, adds);
      offsets_[k] = reordered_bytes_;
      reordered_bytes_ += (static_cast<int64_t>(wanted.get_size()) + 63) / 64 * 64;
    };
    place(0, a, true);
    place(1, b, true);
    place(2, result, false);
  }

  // The kernels run one after the other, so that they share what they take
  // beside the reordered tensors.
  int64_t workspace_bytes() const override {
    int64_t own = main_->workspace_bytes();
    for (const auto &reorder : reorders_) own = std::max(own, reorder ? reorder->workspace_bytes() : 0);
    return reordered_bytes_ + own;
  }

  absl::Status Launch(Stream &stream, const KernelArguments &arguments) override {
    auto *const workspace = static_cast<std::byte *>(arguments.workspace);
    void *const scratch = workspace + reordered_bytes_;
    std::array<const void *, 3> inputs = {arguments.inputs[0], arguments.inputs[1], nullptr};
    if (has_bias_) inputs[2] = arguments.inputs[2];
    for (int k = 0; k < 2; ++k) {
      if (!reorders_[k]) continue;
      void *to = workspace + offsets_[k];
      RETURN_IF_ERROR(reorders_[k]->Launch(stream, {&inputs[k], &to, arguments.scalars, scratch}));
      inputs[k] = to;
    }
    void *y = reorders_[2] ? workspace + offsets_[2] : arguments.outputs[0];
    RETURN_IF_ERROR(main_->Launch(stream, {inputs.data(), &y, arguments.scalars, scratch}));
    if (!reorders_[2]) return absl::OkStatus();
    const void *from = y;
    return reorders_[2]->Launch(stream, {&from, arguments.outputs, arguments.scalars, scratch});
  }

 private:
  const std::unique_ptr<Kernel> main_;
  const bool has_bias_;
  std::array<std::unique_ptr<Kernel>, 3> reorders_;  // of a, b, result
  std::array<int64_t, 3> offsets_{};
  int64_t reordered_bytes_ = 0;
};

// Primitive: dnnl::convolution_forward or dnnl::deconvolution_forward.
template <typename Primitive>
absl::StatusOr<std::unique_ptr<Kernel>> Make(const Description &d, dnnl::algorithm algorithm, bool bias) {
  const Dims channels = {d.y[1]};
  const auto kind = dnnl::prop_kind::forward_inference;
  using Operation = typename Primitive::desc;
  const Operation operation = bias ? Operation(kind, algorithm, d.Any(d.x), d.Any(d.w), d.Plain(channels),
                                               d.Any(d.y), d.stride, d.dilation, d.before, d.after)
                                   : Operation(kind, algorithm, d.Any(d.x), d.Any(d.w), d.Any(d.y), d.stride,
                                               d.dilation, d.before, d.after);
  const typename Primitive::primitive_desc description(operation, OneDnnAttributes(), OneDnnEngine());
  RETURN_IF_ERROR(CheckImplementation(d.dtype, description.impl_info_str()));
  std::vector<OneDnnArgument> arguments = {{DNNL_ARG_SRC, false, 0, description.src_desc()},
                                           {DNNL_ARG_WEIGHTS, false, 1, description.weights_desc()},
                                           {DNNL_ARG_DST, true, 0, description.dst_desc()}};
  if (bias) arguments.push_back({DNNL_ARG_BIAS, false, 2, description.bias_desc()});
  return std::make_unique<ReorderedConvolution>(
      MakeOneDnnKernel(Primitive(description), description.scratchpad_desc(), std::move(arguments)),
      Layouts{d.Plain(d.x), description.src_desc()}, Layouts{d.Weights(), description.weights_desc()},
      Layouts{d.Plain(d.y), description.dst_desc()}, bias);
}

// Operands `dy` and 1 - dy are dY and X.
absl::StatusOr<std::unique_ptr<Kernel>> MakeWeightGradient(const Description &d, int dy, bool add) {
  const auto algorithm = dnnl::algorithm::convolution_direct;
  const dnnl::convolution_forward::primitive_desc forward(
      {dnnl::prop_kind::forward_training, algorithm, d.Any(d.x), d.Any(d.w), d.Any(d.y), d.stride, d.dilation,
       d.before, d.after},
      OneDnnAttributes(), OneDnnEngine());
  const dnnl::convolution_backward_weights::primitive_desc description(
      {algorithm, d.Any(d.x), d.Any(d.w), d.Any(d.y), d.stride, d.dilation, d.before, d.after},
      OneDnnAttributes(), OneDnnEngine(), forward);
  RETURN_IF_ERROR(CheckImplementation(d.dtype, description.impl_info_str()));
  const Layouts of_dy{d.Plain(d.y), description.diff_dst_desc()}, of_x{d.Plain(d.x), description.src_desc()};
  return std::make_unique<ReorderedConvolution>(
      MakeOneDnnKernel(dnnl::convolution_backward_weights(description), description.scratchpad_desc(),
                       {{DNNL_ARG_DIFF_DST, false, dy, description.diff_dst_desc()},
                        {DNNL_ARG_SRC, false, 1 - dy, description.src_desc()},
                        {DNNL_ARG_DIFF_WEIGHTS, true, 0, description.diff_weights_desc()}}),
      dy == 0 ? of_dy : of_x, dy == 0 ? of_x : of_dy, Layouts{d.Weights(), description.diff_weights_desc()},
      false, add);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeOneDnnConvolution(const Convolution &convolution, DType dtype,
                                                              bool transposed, bool bias) {
  Description d = Describe(convolution, transposed);
  d.dtype = dtype;
  return CatchOneDnn([&]() -> absl::StatusOr<std::unique_ptr<Kernel>> {
    if (transposed) return Make<dnnl::deconvolution_forward>(d, dnnl::algorithm::deconvolution_direct, bias);
    return Make<dnnl::convolution_forward>(d, dnnl::algorithm::convolution_direct, bias);
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeOneDnnWeightGradient(const Convolution &convolution, DType dtype,
                                                                 int dy, bool add) {
  Description d = Describe(convolution, /*transposed=*/false);
  d.dtype = dtype;
  return CatchOneDnn([&] { return MakeWeightGradient(d, dy, add); });
}

}  // namespace pipec::cpu
