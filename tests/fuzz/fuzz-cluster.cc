// A cluster's JSON -> a refusal, or devices with rates and a link between every two.
#include "absl/strings/string_view.h"
#include "compiler/cost/cluster_file.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

void ReadAll(absl::string_view text) {
  const absl::StatusOr<pipec::Cluster> cluster = pipec::ParseCluster(text);
  if (!cluster.ok()) return;
  const int devices = static_cast<int>(cluster->devices.size());
  pipec::Require(devices > 0 && cluster->host_of.size() == cluster->devices.size());
  for (const pipec::DeviceProfile& device : cluster->devices) {
    pipec::Require(!device.name.empty() && device.flops_per_second >= 1 && device.bytes_per_second >= 1 &&
            device.launch_seconds >= 0 && device.memory_bytes >= 1);
  }
  for (int a = 0; a < devices && a < 16; ++a) {
    for (int b = 0; b < devices && b < 16; ++b) {
      const pipec::Link link = cluster->LinkBetween(a, b);
      pipec::Require(link.latency_seconds >= 0 && link.bytes_per_second >= 1);
    }
  }
  pipec::Require(pipec::FirstDevices(*cluster, devices).ok() && !pipec::FirstDevices(*cluster, devices + 1).ok());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ReadAll({reinterpret_cast<const char*>(data), size});
  return 0;
}
