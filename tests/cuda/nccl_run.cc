#include "tests/cuda/nccl_run.h"

#include <memory>
#include <string>
#include <vector>

#include "runtime/device/cuda/cuda_device.h"
#include "runtime/transport/nccl/nccl_transport.h"

namespace pipec {

MeetingOf ByNccl(bool one_process, bool one_stream, absl::Duration limit) {
  return [=](int ranks, int replicas) -> MakeTransport {
    std::vector<std::shared_ptr<NcclHub>> hubs;
    const std::string identifier = NewNcclIdentifier().value();
    for (int r = 0; r < (one_process ? 1 : ranks); ++r)
      hubs.push_back(std::make_shared<NcclHub>(
          ranks, identifier, NcclOptions{.replicas = replicas, .timeout = limit, .one_stream = one_stream}));
    // The transports are gone before this function is.
    return [hubs, one_process](int rank, Device& device) {
      return hubs[one_process ? 0 : rank]->Connect(rank, device);
    };
  };
}

DevicesOf Alone(bool graphs) {
  return
      [graphs](int) { return [graphs](int rank) { return MakeCudaDevice(rank, NewStepGraphs(1, graphs)); }; };
}

}  // namespace pipec
