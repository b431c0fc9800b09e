#include "runtime/device/cpu/cpu_device.h"

#include <omp.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernel_registry.h"
#include "runtime/device/cpu/parallel_for.h"
#include "runtime/device/cpu/small_float_rows.h"
#include "runtime/device/host_device.h"
#include "runtime/device/operands/own_casts.h"
#include "runtime/device/operands/sums.h"
#include "runtime/device/widened_kernel.h"

namespace pipec {
namespace {

class CpuConversions : public SmallFloatConversions {
 public:
  absl::Status Widen(Stream&, DType dtype, const void* from, float* to, int64_t n) const override {
    cpu::ParallelFor(n, kGrain, [&](int64_t begin, int64_t end) {
      if (dtype == DType::kFloat16) {
        cpu::WidenRow(static_cast<const Float16*>(from) + begin, to + begin, end - begin);
      } else {
        cpu::WidenRow(static_cast<const BFloat16*>(from) + begin, to + begin, end - begin);
      }
    });
    return absl::OkStatus();
  }
  absl::Status Round(Stream&, DType dtype, const float* from, void* to, int64_t n) const override {
    cpu::ParallelFor(n, kGrain, [&](int64_t begin, int64_t end) {
      if (dtype == DType::kFloat16) {
        cpu::RoundRow(from + begin, static_cast<Float16*>(to) + begin, end - begin);
      } else {
        cpu::RoundRow(from + begin, static_cast<BFloat16*>(to) + begin, end - begin);
      }
    });
    return absl::OkStatus();
  }
  bool reads_host_memory() const override { return true; }

 private:
  static constexpr int64_t kGrain = 16384;  // elements worth a thread
};

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
    if (!Accumulates(spec)) return PrepareOrWiden(spec, prepare);
    ASSIGN_OR_RETURN(const KernelSpec own, WithoutSums(spec, cpu::Kernels().Adds(spec.op, spec.domain)));
    return PrepareOrWiden(own, prepare);
  }

 private:
  // Few kernels take float16 and bfloat16 themselves: those that only move or convert.
  absl::StatusOr<std::unique_ptr<Kernel>> PrepareOrWiden(const KernelSpec& spec, cpu::PrepareFunction prepare) const {
    if (HasOwnCasts(spec)) return MakeWidenedKernel(spec, conversions_, prepare);
    absl::StatusOr<std::unique_ptr<Kernel>> kernel = prepare(spec);
    if (absl::IsUnimplemented(kernel.status()) && HasSmallFloats(spec))
      return MakeWidenedKernel(spec, conversions_, prepare);
    return kernel;
  }
  // Both are properties of the calling thread. oneDNN looks at the number when a primitive is made and when
  // it runs.
  void ClaimThreads() const {
    omp_set_dynamic(0);
    if (omp_get_max_threads() != threads_) omp_set_num_threads(threads_);
  }

  const int threads_;
  const CpuConversions conversions_;
};

}  // namespace

std::unique_ptr<Device> MakeCpuDevice(int threads) { return std::make_unique<CpuDevice>(threads); }

}  // namespace pipec
