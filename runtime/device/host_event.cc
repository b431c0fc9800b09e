#include "runtime/device/host_event.h"

#include "absl/time/clock.h"

namespace pipec {

void HostEvent::Expect() {
  std::lock_guard<std::mutex> lock(mutex_);
  done_ = false;
  status_ = absl::OkStatus();
}

void HostEvent::Complete(absl::Status status, absl::Time not_before) {
  // Told under the lock: who waits may destroy the event as soon as it can know.
  std::lock_guard<std::mutex> lock(mutex_);
  if (done_) return;
  done_ = true;
  status_ = std::move(status);
  not_before_ = not_before;
  changed_.notify_all();
}

absl::Status HostEvent::Await(absl::Time deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!changed_.wait_until(lock, absl::ToChronoTime(deadline), [this] { return done_; })) {
    return absl::DeadlineExceededError("the event did not happen in time");
  }
  const absl::Status status = status_;
  const absl::Time not_before = not_before_;
  lock.unlock();
  if (not_before > deadline) return absl::DeadlineExceededError("the event did not happen in time");
  if (not_before > absl::Now()) absl::SleepFor(not_before - absl::Now());
  return status;
}

}  // namespace pipec
