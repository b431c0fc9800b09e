#include "runtime/device/cpu/cpu_device.h"

#include <omp.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernel_registry.h"
#include "runtime/device/cpu/widened_kernel.h"
#include "runtime/device/host_device.h"

namespace pipec {
namespace {

class CpuDevice : public HostDevice {
 public:
  explicit CpuDevice(int threads) : threads_(std::max(threads, 1)) {}

  absl::string_view name() const override { return "cpu"; }

  absl::StatusOr<std::unique_ptr<Stream>> NewStream() override {
    ClaimThreads();
#if defined(__x86_64__)
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
      return absl::UnimplementedError("the CPU device needs a processor with AVX2 and FMA");
    }
#endif
    return HostDevice::NewStream();
  }

  absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec) override {
    ClaimThreads();
    cpu::PrepareFunction prepare = cpu::Kernels().Find(spec.op, spec.domain);
    if (prepare == nullptr) {
      return absl::UnimplementedError(absl::StrCat("the CPU device has no kernel for ", spec.op,
                                                   " of domain '", spec.domain, "' (node '", spec.name,
                                                   "')"));
    }
    absl::StatusOr<std::unique_ptr<Kernel>> kernel = prepare(spec);
    // Few kernels take float16 and bfloat16 themselves: those that only move or convert.
    if (absl::IsUnimplemented(kernel.status()) && cpu::HasSmallFloats(spec)) {
      return cpu::MakeWidenedKernel(spec, prepare);
    }
    return kernel;
  }

 private:
  // Both are properties of the calling thread. oneDNN looks at the number when a primitive is made and when
  // it runs.
  void ClaimThreads() const {
    omp_set_dynamic(0);
    if (omp_get_max_threads() != threads_) omp_set_num_threads(threads_);
  }

  const int threads_;
};

}  // namespace

std::unique_ptr<Device> MakeCpuDevice(int threads) { return std::make_unique<CpuDevice>(threads); }

}  // namespace pipec
