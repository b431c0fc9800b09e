#include "compiler/cost/cluster.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

constexpr double kGiga = 1e9, kTera = 1e12, kMicro = 1e-6;
constexpr int64_t kGigabyte = 1'000'000'000;
// Accelerators of one server, all joined by fast links (NVIDIA DGX and HGX, V100 to H200).
constexpr int kAcceleratorsOfAHost = 8;

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

double BeyondKnee(const Link& link) {
  return std::isfinite(link.knee_bytes) ? link.bytes_per_second_beyond : link.bytes_per_second;
}

int64_t MachineMemory() { return static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE); }

}  // namespace

Link Slower(const Link& a, const Link& b) {
  return {std::max(a.latency_seconds, b.latency_seconds), std::min(a.bytes_per_second, b.bytes_per_second),
          a.origin == b.origin ? a.origin : Origin::kModelled, std::min(a.knee_bytes, b.knee_bytes),
          std::min(BeyondKnee(a), BeyondKnee(b))};
}

absl::Span<const DeviceProfile> AllDeviceProfiles() { return Profiles(); }

absl::StatusOr<DeviceProfile> FindDevice(absl::string_view name) {
  const auto profile = std::find_if(Profiles().begin(), Profiles().end(),
                                    [name](const DeviceProfile& p) { return p.name == name; });
  if (profile != Profiles().end()) return *profile;
  return absl::InvalidArgumentError(
      absl::StrCat("unknown device ", name, ", known are ",
                   absl::StrJoin(Profiles(), ", ",
                                 [](std::string* out, const DeviceProfile& p) { out->append(p.name); })));
}

bool IsGpu(const DeviceProfile& device) { return device.name != "cpu" && FindDevice(device.name).ok(); }

Link Cluster::LinkBetween(int a, int b) const {
  const auto ranks = rank_links.find(std::minmax(a, b));
  if (ranks != rank_links.end()) return ranks->second;
  if (host_of[a] == host_of[b]) return Slower(devices[a].link, devices[b].link);
  const auto hosts = host_links.find(std::minmax(host_of[a], host_of[b]));
  return hosts != host_links.end() ? hosts->second : network;
}

std::vector<Link> Cluster::Links() const {
  std::vector<Link> links;
  const auto add = [&links](const Link& link) {
    if (std::find(links.begin(), links.end(), link) == links.end()) links.push_back(link);
  };
  for (const DeviceProfile& device : devices) add(device.link);
  if (!host_of.empty() && *std::max_element(host_of.begin(), host_of.end()) > 0) add(network);
  for (const auto& [hosts, link] : host_links) add(link);
  for (const auto& [ranks, link] : rank_links) add(link);
  return links;
}

std::string Cluster::DeviceNames() const {
  std::vector<std::pair<std::string, int>> names;
  for (const DeviceProfile& device : devices) {
    const auto it = std::find_if(names.begin(), names.end(),
                                 [&device](const auto& name) { return name.first == device.name; });
    it == names.end() ? void(names.push_back({device.name, 1})) : void(++it->second);
  }
  if (names.size() == 1) return names[0].first;
  return absl::StrJoin(names, ", ", [](std::string* out, const auto& name) {
    absl::StrAppend(out, name.second, " x ", name.first);
  });
}

Cluster EqualDevices(const DeviceProfile& device, int ranks) {
  Cluster cluster;
  cluster.devices.assign(ranks, device);
  cluster.host_of.assign(ranks, 0);
  return cluster;
}

int DevicesOfOneHost(absl::string_view device) {
  if (device != "cpu") return kAcceleratorsOfAHost;
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

absl::StatusOr<Cluster> MakeCluster(absl::string_view name, int ranks, int64_t memory_limit) {
  ASSIGN_OR_RETURN(DeviceProfile device, FindDevice(name));
  if (name == "cpu") {
    const double cores = std::max(1u, std::thread::hardware_concurrency());
    device.flops_per_second *= cores / ranks;
    device.bytes_per_second *= cores / ranks;
    device.memory_bytes = MachineMemory() / ranks;
  }
  if (memory_limit > 0) device.memory_bytes = memory_limit;
  return EqualDevices(device, ranks);
}

}  // namespace pipec
