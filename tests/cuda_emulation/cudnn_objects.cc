// Doubles of cuDNN's handles and descriptors. Tensors are packed NCHW of 4 or 5 axes, as its documents want them of
// convolutions.
#include "tests/cuda_emulation/cudnn_objects.h"

#include <algorithm>

#include "tests/cuda_emulation/elements.h"

namespace cuda_emulation {
namespace {

cudaError_t SetTensor(Machine& machine, DnnTensor& tensor, cudnnDataType_t type, cudnnTensorFormat_t format,
                      int rank, const int dims[]) {
  const auto refuse = [&](const std::string& why) {
    return machine.Refuse(cudaErrorInvalidValue, "cuDNN: " + why);
  };
  if (ElementBytes(DnnTypeOf(type)) == 0) return refuse("a type of elements that the double does not know");
  if (format != CUDNN_TENSOR_NCHW) return refuse("a layout that the double does not know");
  if (rank < 4 || rank > 5) return refuse("a tensor of " + std::to_string(rank) + " axes, wanted 4 or 5");
  tensor.type = DnnTypeOf(type);
  tensor.rank = rank;
  int64_t elements = 1;
  for (int i = 0; i < rank; ++i) {
    if (dims[i] < 1) return refuse("a dimension of " + std::to_string(dims[i]));
    tensor.dims[i] = dims[i];
    elements *= dims[i];
    if (elements >= int64_t{1} << 31) return refuse("a tensor of 2^31 elements or more");
  }
  return cudaSuccess;
}

}  // namespace

int64_t DnnTensor::elements() const {
  int64_t count = 1;
  for (int i = 0; i < rank; ++i) count *= dims[i];
  return count;
}
size_t DnnTensor::bytes() const { return elements() * ElementBytes(type); }

cudaDataType_t DnnTypeOf(cudnnDataType_t type) {
  switch (type) {
    case CUDNN_DATA_FLOAT:
      return CUDA_R_32F;
    case CUDNN_DATA_DOUBLE:
      return CUDA_R_64F;
    case CUDNN_DATA_HALF:
      return CUDA_R_16F;
    case CUDNN_DATA_BFLOAT16:
      return CUDA_R_16BF;
    default:
      return CUDA_R_8I;
  }
}

cudnnStatus_t DnnStatusOf(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return CUDNN_STATUS_SUCCESS;
    case cudaErrorNotSupported:
      return CUDNN_STATUS_NOT_SUPPORTED;
    case cudaErrorInvalidValue:
    case cudaErrorInvalidResourceHandle:
      return CUDNN_STATUS_BAD_PARAM;
    case cudaErrorMisalignedAddress:
      return CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER;
    default:
      return CUDNN_STATUS_EXECUTION_FAILED;
  }
}

extern "C" const char* cudnnGetErrorString(cudnnStatus_t status) {
  switch (status) {
    case CUDNN_STATUS_SUCCESS:
      return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_NOT_SUPPORTED:
      return "CUDNN_STATUS_NOT_SUPPORTED";
    case CUDNN_STATUS_BAD_PARAM:
      return "CUDNN_STATUS_BAD_PARAM";
    case CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER:
      return "CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER";
    default:
      return "CUDNN_STATUS_EXECUTION_FAILED";
  }
}

extern "C" size_t cudnnGetVersion() { return CUDNN_VERSION; }

// It allocates memory of the device.
extern "C" cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  return DnnStatusOf(UnsafeCall("cudnnCreate", [&](Machine& machine, auto&) {
    return DnnAdd(machine, handle, new DnnHandle{CurrentDevice()});
  }));
}
extern "C" cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  return DnnDestroy<DnnHandle>("cudnnDestroy", handle);
}
extern "C" cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  return DnnCall("cudnnSetStream", [&](Machine& machine) {
    auto& own = DnnObject<DnnHandle>(handle);
    const CUstream_st* const found = machine.StreamOf(stream);
    if (!found)
      return machine.Refuse(cudaErrorInvalidResourceHandle, "cudnnSetStream: a stream that lives no more");
    if (found->device != own.device)
      return machine.Refuse(cudaErrorInvalidValue,
                            "cudnnSetStream: a stream of another device than the handle");
    own.stream = stream;
    return cudaSuccess;
  });
}

extern "C" cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* made) {
  return DnnCreate<DnnTensor>("cudnnCreateTensorDescriptor", made);
}
extern "C" cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t handle) {
  return DnnDestroy<DnnTensor>("cudnnDestroyTensorDescriptor", handle);
}
extern "C" cudnnStatus_t cudnnSetTensorNdDescriptorEx(cudnnTensorDescriptor_t handle,
                                                      cudnnTensorFormat_t format, cudnnDataType_t type,
                                                      int rank, const int dims[]) {
  return DnnCall("cudnnSetTensorNdDescriptorEx", [&](Machine& machine) {
    return SetTensor(machine, DnnObject<DnnTensor>(handle), type, format, rank, dims);
  });
}

extern "C" cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* made) {
  return DnnCreate<DnnTensor>("cudnnCreateFilterDescriptor", made);
}
extern "C" cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t handle) {
  return DnnDestroy<DnnTensor>("cudnnDestroyFilterDescriptor", handle);
}
extern "C" cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t handle, cudnnDataType_t type,
                                                    cudnnTensorFormat_t format, int rank, const int dims[]) {
  return DnnCall("cudnnSetFilterNdDescriptor", [&](Machine& machine) {
    return SetTensor(machine, DnnObject<DnnTensor>(handle), type, format, rank, dims);
  });
}

extern "C" cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* made) {
  return DnnCreate<DnnConvolution>("cudnnCreateConvolutionDescriptor", made);
}
extern "C" cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t handle) {
  return DnnDestroy<DnnConvolution>("cudnnDestroyConvolutionDescriptor", handle);
}
extern "C" cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t handle, int rank,
                                                         const int padding[], const int strides[],
                                                         const int dilations[], cudnnConvolutionMode_t mode,
                                                         cudnnDataType_t compute) {
  return DnnCall("cudnnSetConvolutionNdDescriptor", [&](Machine& machine) {
    auto& own = DnnObject<DnnConvolution>(handle);
    if (rank < 2 || rank > 3)
      return machine.Refuse(cudaErrorInvalidValue, "cuDNN: a convolution of other than 2 or 3 spatial axes");
    for (int i = 0; i < rank; ++i) {
      if (padding[i] < 0 || strides[i] < 1 || dilations[i] < 1)
        return machine.Refuse(cudaErrorInvalidValue, "cuDNN: padding, stride or dilation out of range");
      own.padding[i] = padding[i], own.strides[i] = strides[i], own.dilations[i] = dilations[i];
    }
    own.rank = rank;
    own.mode = mode;
    own.compute = DnnTypeOf(compute);
    return cudaSuccess;
  });
}
extern "C" cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t handle, int groups) {
  return DnnCall("cudnnSetConvolutionGroupCount", [&](Machine&) {
    DnnObject<DnnConvolution>(handle).groups = groups;
    return cudaSuccess;
  });
}
extern "C" cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t handle,
                                                     cudnnMathType_t math) {
  return DnnCall("cudnnSetConvolutionMathType", [&](Machine&) {
    DnnObject<DnnConvolution>(handle).math = math;
    return cudaSuccess;
  });
}

}  // namespace cuda_emulation
