#include "tools/run_transports.h"

#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/counted.h"
#include "runtime/base/status.h"
#include "runtime/transport/local/local_transport.h"
#if PIPEC_CUDA
#include "runtime/device/cuda/cuda_device.h"
#include "runtime/transport/nccl/nccl_transport.h"
#endif

namespace pipec {
namespace {

// What the plan models for activations and gradients; what is exchanged once a step is not modelled.
std::function<absl::Duration(const MessageTag&)> WireTimes(const Manifest& manifest) {
  std::map<std::pair<int, int>, absl::Duration> times;
  for (const ManifestMessage& row : manifest.messages)
    times[{row.from_stage, row.to_stage}] = absl::Nanoseconds(row.modelled_ns);
  return [times = std::move(times)](const MessageTag& tag) {
    const auto it = tag.microbatch < 0 ? times.end() : times.find({tag.from_stage, tag.to_stage});
    return it == times.end() ? absl::ZeroDuration() : it->second;
  };
}

#if PIPEC_CUDA
absl::StatusOr<MakeTransport> ByNccl(const RunFlags& flags, const Manifest& manifest) {
  const int ranks = manifest.ranks * manifest.replicas;
  ASSIGN_OR_RETURN(const int gpus, CountGpus());
  if (gpus < ranks) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--transport=nccl needs a GPU a rank: the plan has ", Counted(ranks, "rank", "ranks"), ", this host ",
        Counted(gpus, "GPU", "GPUs"), "; with --transport=local ranks share GPUs"));
  }
  ASSIGN_OR_RETURN(const std::string identifier, NewNcclIdentifier());
  return [hub = std::make_shared<NcclHub>(
              ranks, identifier,
              NcclOptions{.replicas = manifest.replicas, .timeout = flags.options.executor.timeout})](
             int rank, Device& device) { return hub->Connect(rank, device); };
}
#endif

}  // namespace

absl::StatusOr<MakeTransport> MakeRunTransports(const RunFlags& flags, const Manifest& manifest) {
#if PIPEC_CUDA
  if (flags.transport == "nccl") return ByNccl(flags, manifest);
#endif
  LocalOptions options;
  options.replicas = manifest.replicas;
  if (flags.device == "replay") options.wire_time = WireTimes(manifest);
  return [hub = std::make_shared<LocalHub>(manifest.ranks * manifest.replicas, std::move(options))](
             int rank, Device& device) { return hub->Connect(rank, device); };
}

}  // namespace pipec
