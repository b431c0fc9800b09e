#include "runtime/device/cuda/cuda_device.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <nvtx3/nvToolsExt.h>
#include <cudnn.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cuda/cuda_context.h"
#include "runtime/device/cuda/cuda_event.h"
#include "runtime/device/cuda/cuda_status.h"
#include "runtime/device/cuda/cuda_stream.h"
#include "runtime/device/cuda/faults.h"
#include "runtime/device/cuda/kernel_registry.h"
#include "runtime/device/cuda/kernels/conversions.h"
#include "runtime/device/cuda/kernels/update_gate.h"
#include "runtime/device/cuda/peers.h"
#include "runtime/device/cuda/step_graphs.h"
#include "runtime/device/lagging_device.h"
#include "runtime/device/operands/sums.h"

namespace pipec {
namespace {

class CudaDevice : public Device, public LaggingDevice, private cuda::CudaContext {
 public:
  CudaDevice(int ordinal, std::shared_ptr<StepGraphs> graphs)
      : ordinal_(ordinal), graphs_(graphs ? std::move(graphs) : NewStepGraphs(1, /*capture=*/false)) {}

  ~CudaDevice() override {
    shared_.clear();
    if (blas_ != nullptr) cublasLtDestroy(blas_);
    if (dnn_ != nullptr) cudnnDestroy(dnn_);
    for (void* allocation : allocations_) cudaFree(allocation);
    for (void* allocation : pinned_) cudaFreeHost(allocation);
  }

  absl::string_view name() const override { return "cuda"; }

  void Watch(std::function<absl::Status()> watch) {
    if (faults_ != nullptr) faults_->Watch(std::move(watch));
  }

  void ForgetSteps() { graphs_->Forget(); }

  absl::StatusOr<std::byte*> Allocate(int64_t bytes) override {
    RETURN_IF_ERROR(Claim());
    if (bytes < 0) return absl::InvalidArgumentError(absl::StrCat("cannot allocate ", bytes, " bytes"));
    const int64_t size = std::max<int64_t>(bytes, 1);
    void* memory = nullptr;
    if (const cudaError_t error = cudaMalloc(&memory, size); error != cudaSuccess) {
      return CudaStatus(error, absl::StrCat("cudaMalloc of ", size, " bytes on GPU ", ordinal_));
    }
    allocations_.push_back(memory);
    RETURN_IF_ERROR(RunAlone([&](cudaStream_t stream) -> absl::Status {
      RETURN_IF_CUDA_ERROR(cudaMemsetAsync(memory, 0, size, stream));
      return absl::OkStatus();
    }));
    return static_cast<std::byte*>(memory);
  }

  absl::StatusOr<std::unique_ptr<Stream>> NewStream() override {
    RETURN_IF_ERROR(Claim());
    return CudaStream::Create(*faults_);
  }

  absl::StatusOr<std::unique_ptr<Event>> NewEvent() override {
    RETURN_IF_ERROR(Claim());
    return CudaEvent::Create(*faults_);
  }

  absl::Status CopyToDevice(Stream& stream, void* to, const void* from_host, int64_t bytes) override {
    return CopyAsync(stream, to, from_host, bytes, cudaMemcpyHostToDevice);
  }
  absl::Status CopyToHost(Stream& stream, void* to_host, const void* from, int64_t bytes) override {
    return CopyAsync(stream, to_host, from, bytes, cudaMemcpyDeviceToHost);
  }
  absl::Status Copy(Stream& stream, void* to, const void* from, int64_t bytes) override {
    return CopyAsync(stream, to, from, bytes, cudaMemcpyDeviceToDevice);
  }

  absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec) override {
    RETURN_IF_ERROR(Claim());
    const cuda::PrepareFunction prepare = cuda::Kernels().Find(spec.op, spec.domain);
    if (prepare == nullptr) {
      return absl::UnimplementedError(absl::StrCat("the CUDA device has no kernel for ", spec.op,
                                                   " of domain '", spec.domain, "' (node '", spec.name,
                                                   "')"));
    }
    if (!Accumulates(spec)) return PrepareOrWiden(spec, prepare);
    ASSIGN_OR_RETURN(const KernelSpec own, WithoutSums(spec, cuda::Kernels().Adds(spec.op, spec.domain)));
    return PrepareOrWiden(own, prepare);
  }

  absl::StatusOr<std::byte*> AllocatePinned(int64_t bytes) override {
    RETURN_IF_ERROR(Claim());
    const int64_t size = std::max<int64_t>(bytes, 1);
    void* memory = nullptr;
    if (const cudaError_t error = cudaHostAlloc(&memory, size, cudaHostAllocDefault); error != cudaSuccess)
      return CudaStatus(error, absl::StrCat("cudaHostAlloc of ", size, " bytes"));
    pinned_.push_back(memory);
    return static_cast<std::byte*>(memory);
  }

  absl::Status CloseGateUnlessFinite(Stream& stream, const void* a, const void* b) override {
    RETURN_IF_ERROR(gate().status());
    return cuda::CloseUnlessFinite(static_cast<CudaStream&>(stream).get(), static_cast<const double*>(a),
                                   static_cast<const double*>(b), gate_);
  }
  absl::Status OpenGate(Stream& stream) override {
    RETURN_IF_CUDA_ERROR(
        cudaMemsetAsync(gate_, 0, sizeof *gate_, static_cast<CudaStream&>(stream).get()));
    return absl::OkStatus();
  }

  absl::Status Repeat(Stream& stream, int64_t key, absl::FunctionRef<absl::Status()> enqueue,
                      absl::Time deadline) override {
    RETURN_IF_ERROR(Claim());
    if (member_ == nullptr) {
      ASSIGN_OR_RETURN(member_, StepGraphs::Member::Create(ordinal_));
    }
    return graphs_->Repeat(*member_, static_cast<CudaStream&>(stream), key, enqueue, deadline);
  }
  void Abort(const absl::Status& status) override { graphs_->Abort(status); }

  void BeginRange(const char* name) override { nvtxRangePushA(name); }
  void EndRange() override { nvtxRangePop(); }

 private:
  // Some kernels are made for float32 and float64 alone.
  absl::StatusOr<std::unique_ptr<Kernel>> PrepareOrWiden(const KernelSpec& spec, cuda::PrepareFunction prepare) {
    absl::StatusOr<std::unique_ptr<Kernel>> kernel = prepare(spec, *this);
    if (absl::IsUnimplemented(kernel.status()) && HasSmallFloats(spec)) {
      return MakeWidenedKernel(spec, cuda::Conversions(),
                               [&](const KernelSpec& wide) { return prepare(wide, *this); });
    }
    return kernel;
  }

  int multiprocessors() const override { return multiprocessors_; }
  int major() const override { return major_; }
  std::shared_ptr<const void>& Shared(const std::string& key) override { return shared_[key]; }

  absl::StatusOr<cublasLtContext*> blas() override {
    if (blas_ != nullptr) return blas_;
    const cublasStatus_t status = cublasLtCreate(&blas_);
    if (status == CUBLAS_STATUS_SUCCESS) return blas_;
    return absl::InternalError(absl::StrCat("cublasLtCreate: ", cublasLtGetStatusString(status)));
  }

  absl::StatusOr<cudnnContext*> dnn() override {
    if (dnn_ != nullptr) return dnn_;
    const cudnnStatus_t status = cudnnCreate(&dnn_);
    if (status == CUDNN_STATUS_SUCCESS) return dnn_;
    return absl::InternalError(absl::StrCat("cudnnCreate: ", cudnnGetErrorString(status)));
  }

  absl::StatusOr<const void*> Keep(const void* data, int64_t bytes) override {
    ASSIGN_OR_RETURN(std::byte* const memory, Allocate(bytes));
    if (bytes == 0) return memory;
    RETURN_IF_ERROR(RunAlone([&](cudaStream_t stream) -> absl::Status {
      RETURN_IF_CUDA_ERROR(cudaMemcpyAsync(memory, data, bytes, cudaMemcpyHostToDevice, stream));
      return absl::OkStatus();
    }));
    return memory;
  }

  absl::StatusOr<const cuda::UpdateGate*> gate() override {
    if (gate_ == nullptr) {
      ASSIGN_OR_RETURN(std::byte* const memory, Allocate(sizeof(cuda::UpdateGate)));
      gate_ = reinterpret_cast<cuda::UpdateGate*>(memory);
    }
    return gate_;
  }

  cuda::FaultSite AddFaultSite(const KernelSpec& spec, absl::string_view what,
                               absl::string_view wanted) override {
    return faults_->Add(spec, what, wanted);
  }

  // On a stream of its own that is waited for: streams that do not block do not wait for the legacy one, which
  // cudaMemset and cudaMemcpy use, and both may come back before they are done.
  absl::Status RunAlone(absl::FunctionRef<absl::Status(cudaStream_t stream)> work) {
    ASSIGN_OR_RETURN(const std::unique_ptr<CudaStream> stream, CudaStream::Create(*faults_));
    RETURN_IF_ERROR(work(stream->get()));
    RETURN_IF_CUDA_ERROR(cudaStreamSynchronize(stream->get()));
    return absl::OkStatus();
  }

  // The current GPU is a property of the calling thread.
  absl::Status Claim() {
    if (faults_ == nullptr) return Open();
    return CudaStatus(cudaSetDevice(ordinal_), absl::StrCat("cudaSetDevice(", ordinal_, ")"));
  }

  absl::Status Open() {
    ASSIGN_OR_RETURN(const int count, CountGpus());
    if (ordinal_ >= count) {
      return absl::UnavailableError(absl::StrCat("there is no GPU ", ordinal_, ": this host has ", count));
    }
    RETURN_IF_CUDA_ERROR(cudaSetDevice(ordinal_));
    RETURN_IF_CUDA_ERROR(cudaDeviceGetAttribute(&multiprocessors_, cudaDevAttrMultiProcessorCount, ordinal_));
    RETURN_IF_CUDA_ERROR(cudaDeviceGetAttribute(&major_, cudaDevAttrComputeCapabilityMajor, ordinal_));
    ASSIGN_OR_RETURN(peer_, cuda::Peer::Join(ordinal_));
    ASSIGN_OR_RETURN(faults_, cuda::Faults::Create());
    return absl::OkStatus();
  }

  absl::Status CopyAsync(Stream& stream, void* to, const void* from, int64_t bytes, cudaMemcpyKind kind) {
    if (bytes == 0) return absl::OkStatus();
    RETURN_IF_ERROR(Claim());
    const cudaError_t error = cudaMemcpyAsync(to, from, bytes, kind, static_cast<CudaStream&>(stream).get());
    if (error == cudaSuccess) return absl::OkStatus();
    return CudaStatus(error, absl::StrCat("cudaMemcpyAsync of ", bytes, " bytes"));
  }

  const int ordinal_;
  int multiprocessors_ = 0, major_ = 0;
  std::map<std::string, std::shared_ptr<const void>> shared_;
  cublasLtHandle_t blas_ = nullptr;
  cudnnHandle_t dnn_ = nullptr;
  cuda::UpdateGate* gate_ = nullptr;
  std::unique_ptr<cuda::Peer> peer_;
  std::unique_ptr<cuda::Faults> faults_;
  const std::shared_ptr<StepGraphs> graphs_;
  std::unique_ptr<StepGraphs::Member> member_;
  std::vector<void*> allocations_, pinned_;
};

}  // namespace

std::shared_ptr<StepGraphs> NewStepGraphs(int ranks, bool capture) {
  return std::make_shared<StepGraphs>(ranks, capture);
}

absl::StatusOr<int> CountGpus() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) return CudaStatus(error, "there is no GPU: cudaGetDeviceCount");
  return count;
}

std::unique_ptr<Device> MakeCudaDevice(int ordinal, std::shared_ptr<StepGraphs> graphs) {
  return std::make_unique<CudaDevice>(ordinal, std::move(graphs));
}

void WatchCudaDevice(Device& device, std::function<absl::Status()> watch) {
  if (auto* const own = dynamic_cast<CudaDevice*>(&device)) own->Watch(std::move(watch));
}

void ForgetCudaSteps(Device& device) {
  if (auto* const own = dynamic_cast<CudaDevice*>(&device)) own->ForgetSteps();
}

}  // namespace pipec
