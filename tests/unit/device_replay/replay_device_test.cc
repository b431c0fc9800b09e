#include "runtime/device/replay/replay_device.h"

#include <gtest/gtest.h>

#include "absl/time/clock.h"

namespace pipec {
namespace {

// Only that nothing is faster than modelled: how much slower is the machine's affair, and bench-replay's.
TEST(ReplayDevice, KernelsTakeTheirModelledTime) {
  const std::unique_ptr<Device> device = MakeReplayDevice();
  const std::unique_ptr<Stream> stream = *device->NewStream();
  KernelSpec spec;
  spec.op = "Anything";
  spec.modelled_seconds = 0.002;
  const std::unique_ptr<Kernel> kernel = *device->Prepare(spec);
  spec.modelled_seconds = 0;
  const std::unique_ptr<Kernel> instant = *device->Prepare(spec);
  const absl::Time start = absl::Now();
  for (int k = 0; k < 20; ++k) {
    ASSERT_TRUE(kernel->Launch(*stream, {}).ok());
    ASSERT_TRUE(instant->Launch(*stream, {}).ok());
  }
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(40));
}

}  // namespace
}  // namespace pipec
