#include "runtime/device/null/null_device.h"

#include "runtime/device/computes_nothing.h"
#include "runtime/device/host_device.h"

namespace pipec {
namespace {

class NullKernel : public Kernel {
 public:
  absl::Status Launch(Stream&, const KernelArguments&) override { return absl::OkStatus(); }
};

class NullDevice : public HostDevice, public ComputesNothing {
 public:
  absl::string_view name() const override { return "null"; }
  absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec&) override {
    return std::make_unique<NullKernel>();
  }
};

}  // namespace

std::unique_ptr<Device> MakeNullDevice() { return std::make_unique<NullDevice>(); }

}  // namespace pipec
