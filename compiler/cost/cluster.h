// Devices and the links between them, with published or measured rates.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
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
};

struct MeasuredCosts;

struct DeviceProfile {
  std::string name;              // "cpu", "h200", ...
  double flops_per_second = 0;   // float32 (or TF32 where the device computes float32 products so), dense
  double bytes_per_second = 0;   // memory bandwidth
  double launch_seconds = 0;     // per instruction
  int64_t memory_bytes = 0;
  Link link;                     // between two such devices of one machine
  std::string source;            // where the figures come from
  std::shared_ptr<const MeasuredCosts> measured;  // times that come before the rates; null: none
};

// P equal devices and one kind of link between any two.
struct Cluster {
  DeviceProfile device;
  Link link;
  int64_t memory_limit = 0;      // per device, bytes
};

absl::Span<const DeviceProfile> AllDeviceProfiles();
// One device a rank. Unknown name: InvalidArgument that lists the known ones. "cpu" takes this machine's cores and
// memory divided by `ranks`. memory_limit 0: all of the device's memory.
absl::StatusOr<Cluster> MakeCluster(absl::string_view device, int ranks, int64_t memory_limit);

}  // namespace pipec
