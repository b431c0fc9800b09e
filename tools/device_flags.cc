#include "tools/device_flags.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/cost/cluster_file.h"
#include "compiler/cost/measured_costs.h"
#include "compiler/cost/replicas.h"
#include "runtime/base/counted.h"
#include "runtime/base/status.h"
#include "tools/read_text.h"

namespace pipec {
namespace {

constexpr char kDefaultDevice[] = "cpu";

std::vector<std::string> DeviceNames() {
  std::vector<std::string> names;
  for (const DeviceProfile& profile : AllDeviceProfiles()) names.push_back(profile.name);
  return names;
}

absl::Status WithFile(const absl::Status& status, absl::string_view flag, const std::string& path) {
  return absl::Status(status.code(), absl::StrCat("--", flag, "=", path, ": ", status.message()));
}

}  // namespace

void DeviceFlags::AddTo(FlagTable& table) {
  table.Group("Devices");
  table.Choice("device", &device_, DeviceNames(), "what to plan for; --list-devices describes them",
               kDefaultDevice, "what a plan runs on is piperun's --device");
  table.String("cluster", "FILE.json", &cluster_,
               "devices, hosts and links to plan for, a device a rank in the order of the file; "
               "samples/clusters/README.md describes it",
               "P x R of --device on one host");
  table.String("profile", "FILE", &profile_,
               "measured costs from piperun --profile; what it lacks is fitted to what it has", "none");
  table.Size("memory", &memory_, "limit per device; with --cluster of what each device has",
             "the device's; cpu: this machine's divided by P x R");
  table.Check([this] {
    return device_.empty() || cluster_.empty()
               ? absl::OkStatus()
               : absl::InvalidArgumentError(
                     "--device and --cluster both say what to plan for; give one of them");
  });
}

std::string DeviceFlags::Device() const { return device_.empty() ? kDefaultDevice : device_; }

absl::StatusOr<Cluster> DeviceFlags::ReadWholeCluster() const {
  ASSIGN_OR_RETURN(const std::string contents, ReadText("cluster", cluster_));
  absl::StatusOr<Cluster> cluster = ParseCluster(contents);
  return cluster.ok() ? std::move(cluster) : WithFile(cluster.status(), "cluster", cluster_);
}

absl::StatusOr<int> DeviceFlags::Count() const {
  if (cluster_.empty()) return DevicesOfOneHost(Device());
  ASSIGN_OR_RETURN(const Cluster cluster, ReadWholeCluster());
  return static_cast<int>(cluster.devices.size());
}

std::string DeviceFlags::Source() const {
  if (!cluster_.empty()) return absl::StrCat("the devices of ", cluster_, " (--cluster)");
  return Device() == kDefaultDevice ? "this machine's cores (--device)"
                                    : absl::StrCat("one host of ", Device(), " (--cluster)");
}

absl::StatusOr<Cluster> DeviceFlags::ReadCluster(int ranks, int replicas,
                                                 std::vector<std::string>& notes) const {
  ASSIGN_OR_RETURN(Cluster all, ReadWholeCluster());
  const size_t devices = all.devices.size();
  const int needed = ranks * replicas;
  if (replicas > 1 && static_cast<int>(devices) < needed) {
    const absl::Status few = absl::InvalidArgumentError(absl::StrCat(
        "has ", Counted(devices, "device", "devices"), ", ", replicas, " replicas of ",
        Counted(ranks, "rank", "ranks"), " need ", needed, "; fewer --replicas or --stages fit"));
    return WithFile(few, "cluster", cluster_);
  }
  absl::StatusOr<Cluster> cluster = FirstDevices(std::move(all), needed);
  if (!cluster.ok()) return WithFile(cluster.status(), "cluster", cluster_);
  for (DeviceProfile& device : cluster->devices) {
    if (memory_ > 0) device.memory_bytes = std::min(device.memory_bytes, memory_);
  }
  if (static_cast<int>(devices) > needed)
    notes.push_back(
        absl::StrCat("the first ", needed, " of the ", devices, " devices of ", cluster_, " (--stages)"));
  return cluster;
}

absl::Status DeviceFlags::AddProfile(Cluster& cluster, std::vector<std::string>& notes) const {
  if (profile_.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string contents, ReadText("profile", profile_));
  absl::StatusOr<MeasuredCosts> costs = ParseProfile(contents);
  if (!costs.ok()) return WithFile(costs.status(), "profile", profile_);
  notes.push_back(absl::StrCat("measured times are those of ", Counted(costs->ranks, "rank", "ranks"), " of ",
                               Counted(costs->threads, "thread", "threads"), " each (--profile)"));
  const bool took_time = std::any_of(costs->node_seconds.begin(), costs->node_seconds.end(),
                                     [](const auto& node) { return node.second > 0; });
  if (!took_time)
    notes.push_back("no node of the profile took any time: their times are modelled (--profile)");
  if (absl::Status status = UseProfile(*std::move(costs), cluster); !status.ok())
    return WithFile(status, "profile", profile_);
  return absl::OkStatus();
}

absl::StatusOr<Cluster> DeviceFlags::Resolve(int ranks, int replicas, std::vector<std::string>& notes) const {
  absl::StatusOr<Cluster> cluster = cluster_.empty() ? MakeCluster(Device(), ranks * replicas, memory_)
                                                     : ReadCluster(ranks, replicas, notes);
  if (!cluster.ok()) return cluster;
  for (DeviceProfile& device : cluster->devices) {
    if (given_memory_ > 0) device.memory_bytes = given_memory_;
  }
  RETURN_IF_ERROR(AddProfile(*cluster, notes));
  cluster = FirstReplica(*std::move(cluster), ranks, replicas);
  return cluster.ok() || cluster_.empty() ? cluster : WithFile(cluster.status(), "cluster", cluster_);
}

}  // namespace pipec
