// A product with an epilogue by the double of cuBLASLt, and what it refuses.
#include <cublasLt.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cuda_emulation/control.h"
#include "tests/cuda_emulation/device_array.h"

namespace cuda_emulation {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

// D (2 x 3) = A (2 x 2) B (2 x 3), column-major.
class CublasLt : public testing::Test {
 protected:
  void SetUp() override {
    SetSeed(0);
    ASSERT_EQ(cublasLtCreate(&handle_), CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(cublasLtMatmulDescCreate(&product_, CUBLAS_COMPUTE_32F, CUDA_R_32F), CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(cublasLtMatrixLayoutCreate(&a_, CUDA_R_32F, 2, 2, 2), CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(cublasLtMatrixLayoutCreate(&b_, CUDA_R_32F, 2, 3, 2), CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(cublasLtMatrixLayoutCreate(&d_, CUDA_R_32F, 2, 3, 2), CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(cublasLtMatmulPreferenceCreate(&preference_), CUBLAS_STATUS_SUCCESS);
  }
  void TearDown() override {
    cublasLtMatmulPreferenceDestroy(preference_);
    for (cublasLtMatrixLayout_t layout : {a_, b_, d_}) cublasLtMatrixLayoutDestroy(layout);
    cublasLtMatmulDescDestroy(product_);
    cublasLtDestroy(handle_);
    SetSeed(0);
  }

  void Set(cublasLtEpilogue_t epilogue) {
    cublasLtMatmulDescSetAttribute(product_, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
  }
  void Set(const float* vector) {
    cublasLtMatmulDescSetAttribute(product_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &vector, sizeof vector);
  }
  cublasStatus_t Choose() {
    int found = 0;
    return cublasLtMatmulAlgoGetHeuristic(handle_, product_, a_, b_, d_, d_, preference_, 1, &chosen_,
                                          &found);
  }
  cublasStatus_t Run() {
    const float one = 1, zero = 0;
    return cublasLtMatmul(handle_, product_, &one, a_data_.data(), a_, b_data_.data(), b_, &zero,
                          d_data_.data(), d_, d_data_.data(), d_, &chosen_.algo, nullptr, 0, nullptr);
  }

  void ExpectD(const std::vector<float>& wanted) {
    EXPECT_THAT(d_data_.Read(), Pointwise(FloatNear(1e-5f), wanted));
  }

  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t product_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, d_ = nullptr;
  cublasLtMatmulPreference_t preference_ = nullptr;
  cublasLtMatmulHeuristicResult_t chosen_{};
  DeviceArray<float> a_data_{{1, 2, 3, 4}}, b_data_{{1, 0, 0, 1, 1, 1}}, d_data_{std::vector<float>(6)};
  DeviceArray<float> vector_{{10, 20, 30, 40, 50, 60, 70, 80}};
};

TEST_F(CublasLt, AddsABiasToEachColumn) {
  Set(CUBLASLT_EPILOGUE_BIAS);
  Set(vector_.data());
  ASSERT_EQ(Choose(), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(Run(), CUBLAS_STATUS_SUCCESS);
  EXPECT_THAT(d_data_.Read(), ElementsAre(11, 22, 13, 24, 14, 26));
}

TEST_F(CublasLt, SumsAnOperandOverWhatTheProductSumsOver) {
  Set(CUBLASLT_EPILOGUE_BGRADA);
  Set(vector_.data());
  ASSERT_EQ(Choose(), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(Run(), CUBLAS_STATUS_SUCCESS);
  EXPECT_THAT(d_data_.Read(), ElementsAre(1, 2, 3, 4, 4, 6));
  EXPECT_THAT(vector_.Read(), ElementsAre(4, 6, 30, 40, 50, 60, 70, 80));
  Set(CUBLASLT_EPILOGUE_BGRADB);
  ASSERT_EQ(Choose(), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(Run(), CUBLAS_STATUS_SUCCESS);
  EXPECT_THAT(vector_.Read(), ElementsAre(1, 1, 2, 40, 50, 60, 70, 80));
}

TEST_F(CublasLt, RefusesWhatItsDocumentsForbid) {
  Set(CUBLASLT_EPILOGUE_BIAS);
  ASSERT_EQ(Choose(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(Run(), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_THAT(TakeReports(), ElementsAre(HasSubstr("the epilogue has no vector")));
  Set(vector_.data() + 1);
  EXPECT_EQ(Run(), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_THAT(TakeReports(), ElementsAre(HasSubstr("the epilogue's vector is less aligned")));
  ASSERT_EQ(Choose(), CUBLAS_STATUS_SUCCESS);  // for such a vector
  EXPECT_EQ(Run(), CUBLAS_STATUS_SUCCESS);
  Set(CUBLASLT_EPILOGUE_BGRADB);
  EXPECT_EQ(Run(), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_THAT(TakeReports(), ElementsAre(HasSubstr("the algorithm is another problem's")));
  Set(CUBLASLT_EPILOGUE_RELU_BIAS);
  EXPECT_THAT(TakeReports(), ElementsAre(HasSubstr("an epilogue that the double does not know")));
}

TEST_F(CublasLt, TakesGeluOfTheSum) {
  Set(CUBLASLT_EPILOGUE_GELU);  // of 1 2 3 4 4 6
  ASSERT_EQ(Choose(), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(Run(), CUBLAS_STATUS_SUCCESS);
  ExpectD({0.841192f, 1.954598f, 2.996363f, 3.999930f, 3.999930f, 6.f});
  DeviceArray<float> bias({-1, -3});
  Set(CUBLASLT_EPILOGUE_GELU_BIAS);  // of 0 -1 2 1 3 3
  Set(bias.data());
  ASSERT_EQ(Choose(), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(Run(), CUBLAS_STATUS_SUCCESS);
  ExpectD({0, -0.158808f, 1.954598f, 0.841192f, 2.996363f, 2.996363f});
}

TEST_F(CublasLt, TakesGelusSlopeAtAnAuxiliaryMatrix) {
  std::vector<float> at(18, 100);  // 2 x 3, 8 elements from column to column
  for (int i = 0; i < 6; ++i) at[i / 2 * 8 + i % 2] = static_cast<float>(i - 2) / 2;  // -1 -0.5 0 0.5 1 1.5
  DeviceArray<float> matrix(at), short_one(std::vector<float>(17));
  const auto lead = [&](int64_t elements) {
    cublasLtMatmulDescSetAttribute(product_, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &elements, sizeof elements);
  };
  const auto lies = [&](const float* address) {
    cublasLtMatmulDescSetAttribute(product_, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &address, sizeof address);
  };
  Set(CUBLASLT_EPILOGUE_DGELU);
  lies(matrix.data());
  for (const int64_t wrong : {0, 2, 12}) {
    lead(wrong);
    EXPECT_EQ(Choose(), CUBLAS_STATUS_INVALID_VALUE);
    EXPECT_THAT(TakeReports(), ElementsAre(HasSubstr("a leading dimension that is a multiple of 8")));
  }
  lead(8);
  ASSERT_EQ(Choose(), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(Run(), CUBLAS_STATUS_SUCCESS);
  ExpectD({-0.082964f, 2 * 0.132630f, 3 * 0.5f, 4 * 0.867370f, 4 * 1.082964f, 6 * 1.127711f});
  lies(nullptr);
  EXPECT_EQ(Run(), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_THAT(TakeReports(), ElementsAre(HasSubstr("the epilogue has no auxiliary matrix")));
  lies(matrix.data() + 1);
  EXPECT_EQ(Run(), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_THAT(TakeReports(), ElementsAre(HasSubstr("the auxiliary matrix is less aligned")));
  lies(short_one.data());  // one element short
  ASSERT_EQ(Run(), CUBLAS_STATUS_SUCCESS);
  EXPECT_NE(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_THAT(TakeReports(), testing::Not(testing::IsEmpty()));
}

TEST_F(CublasLt, AVectorMustReachThatFar) {
  DeviceArray<float> two({1, 2});
  Set(CUBLASLT_EPILOGUE_BGRADB);  // three elements
  Set(two.data());
  ASSERT_EQ(Choose(), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(Run(), CUBLAS_STATUS_SUCCESS);
  EXPECT_NE(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_THAT(TakeReports(), testing::Not(testing::IsEmpty()));
}

}  // namespace
}  // namespace cuda_emulation
