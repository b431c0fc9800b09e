// Devices and the links between them, with published or measured rates.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler/cost/origin.h"

namespace pipec {

// One direction between two devices.
struct Link {
  double latency_seconds = 0;
  double bytes_per_second = std::numeric_limits<double>::infinity();
  Origin origin = Origin::kModelled;
  // Bytes of a message beyond the first `knee_bytes` go at another rate.
  double knee_bytes = std::numeric_limits<double>::infinity();
  double bytes_per_second_beyond = std::numeric_limits<double>::infinity();

  bool operator==(const Link&) const = default;
};

// A link that is nowhere faster than the two, if one has no knee or both have the same.
Link Slower(const Link& a, const Link& b);

struct MeasuredCosts;

struct DeviceProfile {
  std::string name;              // "cpu", "h200", ...
  double flops_per_second = 0;   // float32 (or TF32 where the device computes float32 products so), dense
  double bytes_per_second = 0;   // memory bandwidth
  double launch_seconds = 0;     // per instruction
  int64_t memory_bytes = 0;      // what a plan may take of it; 0: no limit
  Link link;                     // to other devices of its host
  std::string source;            // where the figures come from
  std::shared_ptr<const MeasuredCosts> measured;  // times that come before the rates; null: none
};

// The devices of one pipeline, one a rank, and what lies between them.
struct Cluster {
  std::vector<DeviceProfile> devices;              // by rank; those of one name have the same rates
  std::vector<int> host_of;                        // by rank
  Link network;                                    // between hosts
  std::map<std::pair<int, int>, Link> host_links;  // by two hosts, ascending: instead of `network`
  std::map<std::pair<int, int>, Link> rank_links;  // by two ranks, ascending: instead of all else
  std::vector<Link>
      replica_links;  // by rank, to the same rank of the other replicas: the slowest; empty: its device's

  // Between two ranks, either way. Of one host: the slower of what the two devices have.
  Link LinkBetween(int a, int b) const;
  // Every link that two ranks could have between them.
  std::vector<Link> Links() const;
  // "h200", or "2 x h200, 1 x v100": by name, in the order of the ranks.
  std::string DeviceNames() const;
};

absl::Span<const DeviceProfile> AllDeviceProfiles();
// InvalidArgument that lists the known ones if there is none of this name. "cpu" is one core, and its memory left open.
absl::StatusOr<DeviceProfile> FindDevice(absl::string_view name);
// Whether it is a published GPU, which piperun --device=cuda runs a rank on.
bool IsGpu(const DeviceProfile& device);
// How many such devices there are: of "cpu" this machine's cores, of others as many as a host usually has.
int DevicesOfOneHost(absl::string_view device);
// So many of one device, on one host.
Cluster EqualDevices(const DeviceProfile& device, int ranks);
// The same by name. "cpu" takes this machine's cores and memory divided by `ranks`. memory_limit 0: all of the device's
// memory.
absl::StatusOr<Cluster> MakeCluster(absl::string_view device, int ranks, int64_t memory_limit);

}  // namespace pipec
