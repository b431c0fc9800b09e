// A convolution by the double of cuDNN, and what it refuses.
#include <cudnn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cuda_emulation/control.h"
#include "tests/cuda_emulation/device_array.h"

namespace cuda_emulation {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// X (1,1,1,5) and three taps, padding 1.
class Cudnn : public testing::Test {
 protected:
  void SetUp() override {
    SetSeed(0);
    const int x[] = {1, 1, 1, 5}, w[] = {1, 1, 1, 3}, padding[] = {0, 1}, ones[] = {1, 1};
    ASSERT_EQ(cudnnCreate(&handle_), CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(cudnnCreateTensorDescriptor(&x_type_), CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(cudnnCreateTensorDescriptor(&y_type_), CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(cudnnCreateFilterDescriptor(&w_type_), CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(cudnnCreateConvolutionDescriptor(&how_), CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(SetTensor(x_type_, 4, x), CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(SetTensor(y_type_, 4, x), CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(cudnnSetFilterNdDescriptor(w_type_, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 4, w),
              CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(cudnnSetConvolutionNdDescriptor(how_, 2, padding, ones, ones, CUDNN_CROSS_CORRELATION,
                                              CUDNN_DATA_FLOAT),
              CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(cudnnSetConvolutionMathType(how_, CUDNN_FMA_MATH), CUDNN_STATUS_SUCCESS);
  }
  void TearDown() override {
    cudnnDestroyConvolutionDescriptor(how_);
    cudnnDestroyFilterDescriptor(w_type_);
    cudnnDestroyTensorDescriptor(x_type_);
    cudnnDestroyTensorDescriptor(y_type_);
    cudnnDestroy(handle_);
    cudaSetDevice(0);
    SetDevices(1);
    SetSeed(0);
  }

  static cudnnStatus_t SetTensor(cudnnTensorDescriptor_t type, int rank, const int dims[]) {
    return cudnnSetTensorNdDescriptorEx(type, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, rank, dims);
  }
  cudnnStatus_t Run(const float* x, size_t workspace_bytes = 1024,
                    cudnnConvolutionFwdAlgo_t algorithm = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM) {
    const float one = 1, zero = 0;
    return cudnnConvolutionForward(handle_, &one, x_type_, x, w_type_, w_.data(), how_, algorithm,
                                   workspace_.data(), workspace_bytes, &zero, y_type_, y_.data());
  }

  cudnnHandle_t handle_ = nullptr;
  cudnnTensorDescriptor_t x_type_ = nullptr, y_type_ = nullptr;
  cudnnFilterDescriptor_t w_type_ = nullptr;
  cudnnConvolutionDescriptor_t how_ = nullptr;
  DeviceArray<float> x_{{1, 2, 3, 4, 5, 6, 7, 8}}, w_{{1, 10, 100}}, y_{std::vector<float>(5)};
  DeviceArray<float> workspace_{std::vector<float>(256)};
};

TEST_F(Cudnn, Convolves) {
  EXPECT_EQ(Run(x_.data()), CUDNN_STATUS_SUCCESS);
  EXPECT_THAT(y_.Read(), ElementsAre(210, 321, 432, 543, 54));
}

TEST_F(Cudnn, RoundsFloat32UnlessToldNotTo) {
  DeviceArray<float> x({1.0001f, 0, 0, 0, 0});
  ASSERT_EQ(Run(x.data()), CUDNN_STATUS_SUCCESS);
  EXPECT_FLOAT_EQ(y_.Read()[1], 1.0001f);
  ASSERT_EQ(cudnnSetConvolutionMathType(how_, CUDNN_DEFAULT_MATH), CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(Run(x.data()), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(y_.Read()[1], 1);
}

TEST_F(Cudnn, RefusesWhatItsDocumentsForbid) {
  EXPECT_EQ(Run(x_.data() + 1), CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER);
  EXPECT_EQ(Run(x_.data(), 1000), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(Run(x_.data(), 1024, CUDNN_CONVOLUTION_FWD_ALGO_FFT), CUDNN_STATUS_BAD_PARAM);
  const int longer[] = {1, 1, 1, 6}, flat[] = {1, 1, 5};
  EXPECT_EQ(SetTensor(y_type_, 3, flat), CUDNN_STATUS_BAD_PARAM);
  ASSERT_EQ(SetTensor(y_type_, 4, longer), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(Run(x_.data()), CUDNN_STATUS_BAD_PARAM);
  EXPECT_THAT(TakeReports(),
              ElementsAre(HasSubstr("aligned"), HasSubstr("too small"), HasSubstr("does not repeat"),
                          HasSubstr("3 axes"), HasSubstr("not the shape of the convolution")));
}

TEST_F(Cudnn, AStreamOfAnotherDevice) {
  SetDevices(2);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  EXPECT_EQ(cudnnSetStream(handle_, stream), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(Run(x_.data()), CUDNN_STATUS_BAD_PARAM);
  EXPECT_THAT(TakeReports(), ElementsAre(HasSubstr("another device"), HasSubstr("another device")));
  cudaStreamDestroy(stream);
}

TEST_F(Cudnn, ReadsNoFurtherThanMemoryGoes) {
  EXPECT_EQ(Run(x_.data() + 4), CUDNN_STATUS_SUCCESS);  // four elements are left, five are wanted
  EXPECT_NE(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_THAT(TakeReports(), ElementsAre(HasSubstr("cudnnConvolutionForward")));
}

}  // namespace
}  // namespace cuda_emulation
