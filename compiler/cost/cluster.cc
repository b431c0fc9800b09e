#include "compiler/cost/cluster.h"

#include <unistd.h>

#include <algorithm>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace pipec {
namespace {

constexpr double kGiga = 1e9, kTera = 1e12, kMicro = 1e-6;
constexpr int64_t kGigabyte = 1'000'000'000;

// Time from one asynchronous kernel to the next on a busy stream, and of an NCCL send within one machine:
// assumed, because no data sheet has them.
constexpr double kGpuLaunch = 4 * kMicro, kGpuLatency = 10 * kMicro;

const std::vector<DeviceProfile>& Profiles() {
  // Bandwidths of NVLink are one direction: half of what the data sheets call bidirectional.
  static const auto* const kProfiles = new std::vector<DeviceProfile>{
      {"cpu",
       32 * kGiga,
       8 * kGiga,
       0.5 * kMicro,
       0,
       {5 * kMicro, 4 * kGiga},
       "assumed, per core: 16 float32 operations a cycle (half of what AVX2 with two FMA units can do) at 2 "
       "GHz, "
       "memory 8 GB/s; messages are copies between threads"},
      {"v100",
       15.7 * kTera,
       900 * kGiga,
       kGpuLaunch,
       32 * kGigabyte,
       {kGpuLatency, 150 * kGiga},
       "NVIDIA V100 data sheet, SXM2 32 GB: FP32 15.7 TFLOPS, HBM2 900 GB/s, NVLink 300 GB/s both ways"},
      {"a100",
       156 * kTera,
       2039 * kGiga,
       kGpuLaunch,
       80 * kGigabyte,
       {kGpuLatency, 300 * kGiga},
       "NVIDIA A100 data sheet, SXM 80 GB: TF32 156 TFLOPS dense, 2,039 GB/s, NVLink 600 GB/s both ways"},
      {"h100",
       494.5 * kTera,
       3350 * kGiga,
       kGpuLaunch,
       80 * kGigabyte,
       {kGpuLatency, 450 * kGiga},
       "NVIDIA H100 data sheet, SXM5: TF32 989 TFLOPS with sparsity, half of it dense, 3.35 TB/s, NVLink 900 "
       "GB/s "
       "both ways"},
      {"h200",
       494.5 * kTera,
       4800 * kGiga,
       kGpuLaunch,
       141 * kGigabyte,
       {kGpuLatency, 450 * kGiga},
       "NVIDIA H200 data sheet, SXM: TF32 989 TFLOPS with sparsity, half of it dense, 141 GB at 4.8 TB/s, "
       "NVLink 900 "
       "GB/s both ways"},
  };
  return *kProfiles;
}

int64_t MachineMemory() { return static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE); }

}  // namespace

absl::Span<const DeviceProfile> AllDeviceProfiles() { return Profiles(); }

absl::StatusOr<Cluster> MakeCluster(absl::string_view device, int ranks, int64_t memory_limit) {
  auto profile = std::find_if(Profiles().begin(), Profiles().end(),
                              [device](const DeviceProfile& p) { return p.name == device; });
  if (profile == Profiles().end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("unknown device ", device, ", known are ",
                     absl::StrJoin(Profiles(), ", ",
                                   [](std::string* out, const DeviceProfile& p) { out->append(p.name); })));
  }
  Cluster cluster{*profile, profile->link, memory_limit};
  if (device == "cpu") {
    const double cores = std::max(1u, std::thread::hardware_concurrency());
    cluster.device.flops_per_second *= cores / ranks;
    cluster.device.bytes_per_second *= cores / ranks;
    cluster.device.memory_bytes = MachineMemory() / ranks;
  }
  if (memory_limit <= 0) cluster.memory_limit = cluster.device.memory_bytes;
  return cluster;
}

}  // namespace pipec
