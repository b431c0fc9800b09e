// The flags that say what devices to plan for: shared by pipec and pipec-opt.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/cost/cluster.h"
#include "tools/support/flags.h"

namespace pipec {

class DeviceFlags {
 public:
  // The group "Devices".
  void AddTo(FlagTable& table);

  // How many devices there are: of a cluster's file all, else DevicesOfOneHost.
  absl::StatusOr<int> Count() const;
  // What Count counts, with the flag that changes it.
  std::string Source() const;
  // Resolve's devices shall have so many bytes each, whatever the flags say.
  void SetMemory(int64_t bytes) { given_memory_ = bytes; }
  // A device for each rank of a replica, with what was measured of it. What the user should know of them is added to
  // `notes`.
  absl::StatusOr<Cluster> Resolve(int ranks, int replicas, std::vector<std::string>& notes) const;

 private:
  std::string Device() const;
  absl::StatusOr<Cluster> ReadWholeCluster() const;
  absl::StatusOr<Cluster> ReadCluster(int ranks, int replicas, std::vector<std::string>& notes) const;
  absl::Status AddProfile(Cluster& cluster, std::vector<std::string>& notes) const;

  std::string device_, cluster_, profile_;  // "": not given
  int64_t memory_ = 0, given_memory_ = 0;
};

}  // namespace pipec
