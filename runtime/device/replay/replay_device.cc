#include "runtime/device/replay/replay_device.h"

#include <sys/prctl.h>

#include <cerrno>

#include "absl/time/clock.h"
#include "runtime/device/computes_nothing.h"
#include "runtime/device/host_device.h"

namespace pipec {
namespace {

// Of one rank: when the kernels so far would be over.
class ReplayClock {
 public:
  void Take(absl::Duration duration) {
    // A thread wakes up a little after its time; longer than this it has waited for a message.
    constexpr absl::Duration kOvershoot = absl::Microseconds(300);
    const absl::Time now = absl::Now();
    over_ = (now - over_ <= kOvershoot ? over_ : now) + duration;
    if (over_ > now) absl::SleepFor(over_ - now);
  }

 private:
  absl::Time over_ = absl::InfinitePast();
};

class ReplayKernel : public Kernel {
 public:
  ReplayKernel(ReplayClock& clock, double seconds) : clock_(clock), duration_(absl::Seconds(seconds)) {}
  absl::Status Launch(Stream&, const KernelArguments&) override {
    clock_.Take(duration_);
    return absl::OkStatus();
  }

 private:
  ReplayClock& clock_;
  const absl::Duration duration_;
};

class ReplayDevice : public HostDevice, public ComputesNothing {
 public:
  absl::string_view name() const override { return "replay"; }
  // The rank's thread calls it. What the kernel adds to a sleep so as to wake several threads at once (50 us, if nobody
  // asks for less) would be added at every action and message.
  absl::StatusOr<std::unique_ptr<Stream>> NewStream() override {
    constexpr unsigned long kNanosecond = 1;
    if (prctl(PR_SET_TIMERSLACK, kNanosecond) != 0) return absl::ErrnoToStatus(errno, "cannot sleep exactly");
    return HostDevice::NewStream();
  }
  absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec) override {
    return std::make_unique<ReplayKernel>(clock_, spec.modelled_seconds);
  }

 private:
  ReplayClock clock_;
};

}  // namespace

std::unique_ptr<Device> MakeReplayDevice() { return std::make_unique<ReplayDevice>(); }

}  // namespace pipec
