#include "tools/run_devices.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/counted.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/cpu_device.h"
#include "runtime/device/null/null_device.h"
#include "runtime/device/replay/replay_device.h"
#if PIPEC_CUDA
#include "runtime/device/cuda/cuda_device.h"
#endif

namespace pipec {
namespace {

#if PIPEC_CUDA
absl::StatusOr<MakeDevice> MakeCudaDevices(const RunFlags& flags, int ranks, RunObserver& observer) {
  ASSIGN_OR_RETURN(const int gpus, CountGpus());
  if (gpus < ranks) {
    observer.OnNote(absl::StrCat(ranks, " ranks share ", Counted(gpus, "GPU", "GPUs"),
                                 " (CUDA_VISIBLE_DEVICES says which)"));
  }
  return [=, graphs = NewStepGraphs(ranks, !flags.no_graph)](int rank) {
    return MakeCudaDevice(gpus < ranks ? rank * gpus / ranks : rank, graphs);
  };
}
#endif

}  // namespace

absl::StatusOr<MakeDevice> MakeRunDevices([[maybe_unused]] const RunFlags& flags, [[maybe_unused]] int ranks,
                                          int threads, [[maybe_unused]] RunObserver& observer) {
  if (flags.device == "null") return [](int) { return MakeNullDevice(); };
  if (flags.device == "replay") return [](int) { return MakeReplayDevice(); };
#if PIPEC_CUDA
  if (flags.device == "cuda") return MakeCudaDevices(flags, ranks, observer);
#endif
  return [threads](int) { return MakeCpuDevice(threads); };
}

}  // namespace pipec
