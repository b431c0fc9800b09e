#include "runtime/device/cuda/kernels/dnn_convolution.h"

#include <cudnn.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cuda/kernels/dnn_status.h"
#include "runtime/device/cuda/owned_handle.h"

namespace pipec::cuda {
namespace {

constexpr size_t kMostWorkspace = size_t{128} << 20;

using Tensor = OwnedHandle<cudnnTensorDescriptor_t, cudnnDestroyTensorDescriptor>;
using Filter = OwnedHandle<cudnnFilterDescriptor_t, cudnnDestroyFilterDescriptor>;
using Description = OwnedHandle<cudnnConvolutionDescriptor_t, cudnnDestroyConvolutionDescriptor>;

std::optional<cudnnDataType_t> TypeOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return CUDNN_DATA_FLOAT;
    case DType::kFloat64:
      return CUDNN_DATA_DOUBLE;
    case DType::kFloat16:
      return CUDNN_DATA_HALF;
    case DType::kBFloat16:
      return CUDNN_DATA_BFLOAT16;
    default:
      return std::nullopt;
  }
}

bool IsSmall(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBFloat16; }

// The first of cuDNN's proposals, fastest first, that repeats bit by bit and fits into the workspace. Tensor cores
// would round float32 to 10 bits.
template <typename Proposal>
const Proposal* FirstFit(const std::vector<Proposal>& proposals, int found, DType dtype) {
  for (int i = 0; i < found; ++i) {
    const Proposal& own = proposals[i];
    const bool exact = own.mathType == CUDNN_FMA_MATH || own.mathType == CUDNN_DEFAULT_MATH;
    if (own.status == CUDNN_STATUS_SUCCESS && own.determinism == CUDNN_DETERMINISTIC &&
        own.memory <= kMostWorkspace && (exact || IsSmall(dtype))) {
      return &own;
    }
  }
  return nullptr;
}

class CudnnConvolution : public DnnConvolution {
 public:
  CudnnConvolution(const SlidingProduct& product, Computed computed, cudnnContext* dnn)
      : product_(product), computed_(computed), dnn_(dnn) {}

  absl::Status Prepare(const KernelSpec& spec) {
    const std::optional<cudnnDataType_t> type = TypeOf(product_.dtype);
    if (!type) {
      return absl::UnimplementedError(absl::StrCat("node '", spec.name, "' (", spec.op,
                                                   "): the CUDA device convolves floats, not ",
                                                   Name(product_.dtype)));
    }
    RETURN_IF_ERROR(Describe(spec, *type));
    absl::StatusOr<bool> chosen = Choose();
    if (chosen.ok() && !*chosen) {
      chosen = absl::UnimplementedError(
          absl::StrCat("cuDNN has no algorithm whose results repeat, in ", kMostWorkspace, " bytes"));
    }
    if (chosen.ok()) return absl::OkStatus();
    return absl::Status(chosen.status().code(),
                        absl::StrCat("node '", spec.name, "' (", spec.op, ") of ", Name(product_.dtype), ": ",
                                     chosen.status().message()));
  }

  int64_t workspace_bytes() const override { return static_cast<int64_t>(workspace_bytes_); }

  absl::Status Run(cudaStream_t stream, void* places, void* weights, void* windows, bool add,
                   void* workspace) const override {
    const float one = 1, beta = add ? 1 : 0;
    const double wide_one = one, wide_beta = beta;
    const bool doubles = product_.dtype == DType::kFloat64;
    const void* const by = doubles ? static_cast<const void*>(&wide_one) : &one;
    const void* const keep = doubles ? static_cast<const void*>(&wide_beta) : &beta;
    RETURN_IF_DNN_ERROR(cudnnSetStream(dnn_, stream));
    switch (computed_) {
      case Computed::kWindows:
        return DnnStatus(
            cudnnConvolutionForward(dnn_, by, places_, places, weights_, weights, description_, forward_,
                                    workspace, workspace_bytes_, keep, windows_, windows),
            "cudnnConvolutionForward");
      case Computed::kPlaces:
        return DnnStatus(
            cudnnConvolutionBackwardData(dnn_, by, weights_, weights, windows_, windows, description_, data_,
                                         workspace, workspace_bytes_, keep, places_, places),
            "cudnnConvolutionBackwardData");
      case Computed::kWeights:
        return DnnStatus(
            cudnnConvolutionBackwardFilter(dnn_, by, places_, places, windows_, windows, description_,
                                           filter_, workspace, workspace_bytes_, keep, weights_, weights),
            "cudnnConvolutionBackwardFilter");
    }
    return absl::InternalError("a convolution computes nothing");
  }

 private:
  // One spatial axis is two to cuDNN, the first of one place.
  absl::Status Describe(const KernelSpec& spec, cudnnDataType_t type) {
    const int rank = std::max(product_.axes.rank, 2);
    std::vector<int64_t> in = {product_.batch, product_.groups * product_.place_channels};
    std::vector<int64_t> out = {product_.batch, product_.groups * product_.window_channels};
    std::vector<int64_t> taps = {out[1], product_.place_channels};
    std::vector<int> padding, strides, dilations;
    for (int i = 3 - rank; i < 3; ++i) {
      const WindowAxis& axis = product_.axes.axes[i];
      in.push_back(axis.in), out.push_back(axis.out), taps.push_back(axis.kernel);
      padding.push_back(static_cast<int>(axis.before));
      strides.push_back(static_cast<int>(axis.stride));
      dilations.push_back(static_cast<int>(axis.dilation));
    }
    for (const auto* dims : {&in, &out, &taps}) {
      if (NumElements(*dims) > std::numeric_limits<int>::max()) {
        return absl::UnimplementedError(absl::StrCat("node '", spec.name, "' (", spec.op,
                                                     "): ", ToString(Shape(dims->begin(), dims->end())),
                                                     ", cuDNN counts fewer than 2^31 elements"));
      }
    }
    const auto narrow = [](const std::vector<int64_t>& dims) {
      return std::vector<int>(dims.begin(), dims.end());
    };
    RETURN_IF_DNN_ERROR(cudnnCreateTensorDescriptor(&places_));
    RETURN_IF_DNN_ERROR(
        cudnnSetTensorNdDescriptorEx(places_, CUDNN_TENSOR_NCHW, type, rank + 2, narrow(in).data()));
    RETURN_IF_DNN_ERROR(cudnnCreateTensorDescriptor(&windows_));
    RETURN_IF_DNN_ERROR(
        cudnnSetTensorNdDescriptorEx(windows_, CUDNN_TENSOR_NCHW, type, rank + 2, narrow(out).data()));
    RETURN_IF_DNN_ERROR(cudnnCreateFilterDescriptor(&weights_));
    RETURN_IF_DNN_ERROR(
        cudnnSetFilterNdDescriptor(weights_, type, CUDNN_TENSOR_NCHW, rank + 2, narrow(taps).data()));
    RETURN_IF_DNN_ERROR(cudnnCreateConvolutionDescriptor(&description_));
    RETURN_IF_DNN_ERROR(cudnnSetConvolutionNdDescriptor(
        description_, rank, padding.data(), strides.data(), dilations.data(), CUDNN_CROSS_CORRELATION,
        type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT));
    RETURN_IF_DNN_ERROR(cudnnSetConvolutionGroupCount(description_, static_cast<int>(product_.groups)));
    return SetMath(IsSmall(product_.dtype) ? CUDNN_TENSOR_OP_MATH : CUDNN_FMA_MATH);
  }

  // False: there is none.
  absl::StatusOr<bool> Choose() {
    int found = 0;
    switch (computed_) {
      case Computed::kWindows: {
        std::vector<cudnnConvolutionFwdAlgoPerf_t> proposals(CUDNN_CONVOLUTION_FWD_ALGO_COUNT);
        RETURN_IF_DNN_ERROR(cudnnGetConvolutionForwardAlgorithm_v7(dnn_, places_, weights_, description_,
                                                                   windows_, CUDNN_CONVOLUTION_FWD_ALGO_COUNT,
                                                                   &found, proposals.data()));
        const auto* const chosen = FirstFit(proposals, found, product_.dtype);
        if (chosen == nullptr) return false;
        forward_ = chosen->algo;
        RETURN_IF_ERROR(Take(chosen->mathType));
        RETURN_IF_DNN_ERROR(cudnnGetConvolutionForwardWorkspaceSize(dnn_, places_, weights_, description_,
                                                                    windows_, forward_, &workspace_bytes_));
        return true;
      }
      case Computed::kPlaces: {
        std::vector<cudnnConvolutionBwdDataAlgoPerf_t> proposals(CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT);
        RETURN_IF_DNN_ERROR(cudnnGetConvolutionBackwardDataAlgorithm_v7(
            dnn_, weights_, windows_, description_, places_, CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT, &found,
            proposals.data()));
        const auto* const chosen = FirstFit(proposals, found, product_.dtype);
        if (chosen == nullptr) return false;
        data_ = chosen->algo;
        RETURN_IF_ERROR(Take(chosen->mathType));
        RETURN_IF_DNN_ERROR(cudnnGetConvolutionBackwardDataWorkspaceSize(
            dnn_, weights_, windows_, description_, places_, data_, &workspace_bytes_));
        return true;
      }
      case Computed::kWeights: {
        std::vector<cudnnConvolutionBwdFilterAlgoPerf_t> proposals(CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT);
        RETURN_IF_DNN_ERROR(cudnnGetConvolutionBackwardFilterAlgorithm_v7(
            dnn_, places_, windows_, description_, weights_, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT, &found,
            proposals.data()));
        const auto* const chosen = FirstFit(proposals, found, product_.dtype);
        if (chosen == nullptr) return false;
        filter_ = chosen->algo;
        RETURN_IF_ERROR(Take(chosen->mathType));
        RETURN_IF_DNN_ERROR(cudnnGetConvolutionBackwardFilterWorkspaceSize(
            dnn_, places_, windows_, description_, weights_, filter_, &workspace_bytes_));
        return true;
      }
    }
    return false;
  }

  absl::Status SetMath(cudnnMathType_t math) {
    return DnnStatus(cudnnSetConvolutionMathType(description_, math), "cudnnSetConvolutionMathType");
  }
  // A proposal is made for one kind of arithmetic. The default one may use tensor cores, where FMA does not.
  absl::Status Take(cudnnMathType_t math) {
    return IsSmall(product_.dtype) ? SetMath(math) : absl::OkStatus();
  }

  const SlidingProduct product_;
  const Computed computed_;
  cudnnContext* const dnn_;
  Tensor places_, windows_;
  Filter weights_;
  Description description_;
  cudnnConvolutionFwdAlgo_t forward_{};
  cudnnConvolutionBwdDataAlgo_t data_{};
  cudnnConvolutionBwdFilterAlgo_t filter_{};
  size_t workspace_bytes_ = 0;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const DnnConvolution>> DnnConvolution::Create(const KernelSpec& spec,
                                                                             const SlidingProduct& product,
                                                                             Computed computed,
                                                                             CudaContext& context) {
  ASSIGN_OR_RETURN(cudnnContext* const dnn, context.dnn());
  auto made = std::make_shared<CudnnConvolution>(product, computed, dnn);
  RETURN_IF_ERROR(made->Prepare(spec));
  return made;
}

}  // namespace pipec::cuda
