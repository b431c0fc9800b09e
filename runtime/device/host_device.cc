#include "runtime/device/host_device.h"

#include <sys/mman.h>

#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "runtime/device/host_event.h"

namespace pipec {
namespace {

constexpr int64_t kHugePage = int64_t{2} << 20;

class HostStream : public Stream {
 public:
  // Only HostEvents exist on the host: the device makes them, and the local transport completes them.
  absl::Status Wait(Event& event, absl::Time deadline) override {
    return event.Await(deadline);
  }
  absl::Status Record(Event& event) override {
    static_cast<HostEvent&>(event).Complete();
    return absl::OkStatus();
  }
  absl::Status Synchronize(absl::Time) override { return absl::OkStatus(); }
};

}  // namespace

HostDevice::~HostDevice() {
  for (const Mapping& mapping : mappings_) munmap(mapping.address, mapping.bytes);
}

absl::StatusOr<std::byte*> HostDevice::Allocate(int64_t bytes) {
  if (bytes < 0 || bytes > std::numeric_limits<int64_t>::max() - 2 * kHugePage) {
    return absl::InvalidArgumentError(absl::StrCat("cannot allocate ", bytes, " bytes"));
  }
  const bool huge = bytes >= kHugePage;
  // One huge page more, so that an aligned start fits in.
  const int64_t mapped = huge ? bytes + kHugePage : std::max<int64_t>(bytes, 1);
  void* address = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) {
    return absl::ResourceExhaustedError(absl::StrCat("the host has no ", bytes, " bytes of memory"));
  }
  mappings_.push_back({address, mapped});
  auto start = reinterpret_cast<uintptr_t>(address);
  if (huge) {
    start = (start + kHugePage - 1) / kHugePage * kHugePage;
    // Without huge pages it is only slower, so a refusal does not matter.
    madvise(reinterpret_cast<void*>(start), bytes, MADV_HUGEPAGE);
  }
  return reinterpret_cast<std::byte*>(start);
}

absl::StatusOr<std::unique_ptr<Stream>> HostDevice::NewStream() { return std::make_unique<HostStream>(); }

absl::StatusOr<std::unique_ptr<Event>> HostDevice::NewEvent() { return std::make_unique<HostEvent>(); }

absl::Status HostDevice::CopyToDevice(Stream& stream, void* to, const void* from_host, int64_t bytes) {
  return Copy(stream, to, from_host, bytes);
}

absl::Status HostDevice::CopyToHost(Stream& stream, void* to_host, const void* from, int64_t bytes) {
  return Copy(stream, to_host, from, bytes);
}

absl::Status HostDevice::Copy(Stream&, void* to, const void* from, int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
  return absl::OkStatus();
}

}  // namespace pipec
