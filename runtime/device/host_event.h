// An event of the host: set by one thread, awaited by others, reusable. The CPU device's events are of this class, and
// the local transport completes them.
#pragma once

#include <condition_variable>
#include <mutex>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/device/device.h"

namespace pipec {

class HostEvent : public Event {
 public:
  // Not happened yet.
  void Expect() override;
  // Happened; a status that is not OK is what every waiter gets. With `not_before` it is known now when it will have
  // happened: waiters wait until then.
  void Complete(absl::Status status = absl::OkStatus(), absl::Time not_before = absl::InfinitePast());
  void Fail(const absl::Status& status) override { Complete(status); }
  absl::Status Await(absl::Time deadline) override;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  absl::Time not_before_;
  absl::Status status_;
};

}  // namespace pipec
