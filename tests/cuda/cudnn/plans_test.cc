// cuDNN itself compiles the graphs of attention, for GPUs that are not there: it takes a device's properties in place
// of a handle (CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR), which this program sets where the product sets its handle (the
// linker's --wrap), and driver.cc takes the kernels. What they compute is not run here, but over the emulation and on
// a GPU (tests/cuda).
#include <cudnn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <ostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/device/cuda/kernels/dnn_attention.h"
#include "runtime/device/cuda/kernels/dnn_attention_rows.h"

extern "C" cudnnStatus_t __real_cudnnBackendSetAttribute(cudnnBackendDescriptor_t,
                                                         cudnnBackendAttributeName_t,
                                                         cudnnBackendAttributeType_t, int64_t, const void*);

namespace {

cudnnBackendDescriptor_t properties = nullptr;

}  // namespace

extern "C" cudnnStatus_t __wrap_cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                                         cudnnBackendAttributeName_t name,
                                                         cudnnBackendAttributeType_t type, int64_t count,
                                                         const void* values) {
  const auto set_properties = [&](cudnnBackendAttributeName_t instead) {
    return __real_cudnnBackendSetAttribute(descriptor, instead, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                           &properties);
  };
  if (name == CUDNN_ATTR_OPERATIONGRAPH_HANDLE) return CUDNN_STATUS_SUCCESS;
  if (name == CUDNN_ATTR_EXECUTION_PLAN_HANDLE) return set_properties(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
  if (name == CUDNN_ATTR_ENGINEHEUR_MODE) {
    if (const cudnnStatus_t status = set_properties(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP)) return status;
  }
  return __real_cudnnBackendSetAttribute(descriptor, name, type, count, values);
}

namespace pipec::cuda {

// Kernels beside the plans, which nobody launches here.
absl::Status ZeroHiddenRows(cudaStream_t, const float*, void*, int64_t, int64_t) { std::abort(); }
absl::Status LogsOfSeenRows(cudaStream_t, const float*, float*, int64_t) { std::abort(); }

namespace {

struct Gpu {
  const char* name;
  int major, multiprocessors, shared_memory;
};
void PrintTo(const Gpu& gpu, std::ostream* out) { *out << gpu.name; }

class AbsentGpu : public CudaContext {
 public:
  explicit AbsentGpu(const Gpu& gpu) : gpu_(gpu) {}
  int multiprocessors() const override { return gpu_.multiprocessors; }
  int major() const override { return gpu_.major; }
  absl::StatusOr<cudnnContext*> dnn() override { return nullptr; }
  std::shared_ptr<const void>& Shared(const std::string& key) override { return shared_[key]; }
  absl::StatusOr<cublasLtContext*> blas() override { std::abort(); }
  absl::StatusOr<const void*> Keep(const void*, int64_t) override { std::abort(); }
  absl::StatusOr<const UpdateGate*> gate() override { std::abort(); }
  FaultSite AddFaultSite(const KernelSpec&, absl::string_view, absl::string_view) override { std::abort(); }

 private:
  const Gpu gpu_;
  std::map<std::string, std::shared_ptr<const void>> shared_;
};

class CudnnPlans : public testing::TestWithParam<Gpu> {
 protected:
  void SetUp() override {
    if (cudnnGetVersion() / 100 != 919)
      GTEST_SKIP() << "a device's properties are written as cuDNN 9.19 reads them";
    const Gpu& gpu = GetParam();
    const std::string json = absl::StrCat(
        R"({"deviceVer": )", gpu.major * 100, R"(, "multiProcessorCount": )", gpu.multiprocessors,
        R"(, "maxSharedMemoryPerBlockOptin": )", gpu.shared_memory,
        R"(, "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64], "regsPerBlock": 65536,
            "warpSize": 32, "maxSharedMemoryPerBlock": 49152, "reservedSharedMemoryPerBlock": 1024,
            "maxRegistersPerSM": 65536, "maxCtasPerSM": 32, "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048,
            "pciDeviceId": 1, "isTccDriver": 0, "supportCoopLaunch": 1, "totalGlobalMem": 80000000000,
            "smClockRateKHz": 1410000, "memClockRateKHz": 1593000, "l2CacheSize": 41943040, "cudaDeviceId": 0,
            "driverVer": 13000, "deviceName": "absent"})");
    ASSERT_EQ(cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &properties),
              CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(
        __real_cudnnBackendSetAttribute(properties, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                                        CUDNN_TYPE_CHAR, static_cast<int64_t>(json.size()), json.data()),
        CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(cudnnBackendFinalize(properties), CUDNN_STATUS_SUCCESS);
  }
  void TearDown() override {
    if (properties != nullptr) cudnnBackendDestroyDescriptor(properties);
    properties = nullptr;
  }

  // Workspaces of both directions, no larger than these.
  void ExpectPlans(const Attention& a, int64_t most, int64_t most_backward) {
    KernelSpec spec;
    spec.outputs.resize(2);
    for (const bool backward : {false, true}) {
      AbsentGpu gpu(GetParam());
      const auto kernel = backward ? MakeDnnAttentionGrad(spec, a, gpu) : MakeDnnAttention(spec, a, gpu);
      ASSERT_TRUE(kernel.ok()) << kernel.status() << (backward ? ", backward" : ", forward");
      EXPECT_LE((*kernel)->workspace_bytes(), backward ? most_backward : most);
    }
  }

  static Attention Of(DType dtype, Shape heads, int64_t rows, int64_t columns, int64_t depth) {
    Attention a;
    a.dtype = dtype;
    a.heads = std::move(heads);
    a.rows = rows, a.columns = columns, a.depth = a.width = depth;
    return a;
  }
};

// No weights are kept forward; backward dP of some heads.
constexpr int64_t kKilobyte = 1 << 10, kGradient = int64_t{66} << 20;

TEST_P(CudnnPlans, CausalHeads) {
  Attention a = Of(DType::kBFloat16, {64, 12}, 1024, 1024, 64);
  a.causal = true;
  ExpectPlans(a, kKilobyte, kGradient);
}

TEST_P(CudnnPlans, LongRows) {
  ExpectPlans(Of(DType::kFloat16, {4, 8}, 4096, 4096, 128), kKilobyte, kGradient);
}

TEST_P(CudnnPlans, FewRowsOfSmallHeads) {
  Attention a = Of(DType::kFloat16, {3}, 5, 7, 8);
  a.width = 16;
  ExpectPlans(a, kKilobyte, kGradient);
}

// As exporters of PyTorch write it.
TEST_P(CudnnPlans, AMaskOfSamplesThatMayHideRows) {
  Attention a = Of(DType::kBFloat16, {4, 12}, 512, 512, 64);
  a.zero_rows = true;
  a.mask = Attention::Mask::kAdded;
  a.mask_steps = {512 * 512, 0};
  a.mask_row_step = 512, a.mask_column_step = 1;
  ExpectPlans(a, kKilobyte, kGradient);
}

INSTANTIATE_TEST_SUITE_P(All, CudnnPlans,
                         testing::Values(Gpu{"sm_80", 8, 108, 166912}, Gpu{"sm_90", 9, 132, 232448}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace pipec::cuda
