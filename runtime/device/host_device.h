// What devices that compute with the host's processor share: memory, streams that run their work at once,
// events of class HostEvent, copies. The CPU and the null device add their kernels.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/device/device.h"

namespace pipec {

class HostDevice : public Device {
 public:
  HostDevice() = default;
  ~HostDevice() override;
  HostDevice(const HostDevice&) = delete;
  HostDevice& operator=(const HostDevice&) = delete;

  // Anonymous pages, 2 MB aligned and asked to be huge from 2 MB on. They become real where they are first
  // written: call this and write from the rank's thread, and they lie on its node.
  absl::StatusOr<std::byte*> Allocate(int64_t bytes) override;
  absl::StatusOr<std::unique_ptr<Stream>> NewStream() override;
  absl::StatusOr<std::unique_ptr<Event>> NewEvent() override;
  absl::Status CopyToDevice(Stream& stream, void* to, const void* from_host, int64_t bytes) override;
  absl::Status CopyToHost(Stream& stream, void* to_host, const void* from, int64_t bytes) override;
  absl::Status Copy(Stream& stream, void* to, const void* from, int64_t bytes) override;

 private:
  struct Mapping {
    void* address;
    int64_t bytes;
  };
  std::vector<Mapping> mappings_;
};

}  // namespace pipec
