#include "runtime/driver/rank_group.h"

#include <utility>

namespace pipec {

RankGroup::RankGroup(int ranks, std::function<void(int, const absl::Status&)> on_failure)
    : on_failure_(std::move(on_failure)), has_work_(ranks, 0) {
  for (int rank = 0; rank < ranks; ++rank) threads_.emplace_back([this, rank] { Loop(rank); });
}

RankGroup::~RankGroup() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

absl::Status RankGroup::RunAll(absl::FunctionRef<absl::Status(int)> work) { return Run(0, size(), work); }
absl::Status RankGroup::RunOn(int rank, absl::FunctionRef<absl::Status(int)> work) {
  return Run(rank, 1, work);
}

absl::Status RankGroup::Run(int first, int count, absl::FunctionRef<absl::Status(int)> work) {
  std::unique_lock<std::mutex> lock(mutex_);
  work_ = &work;
  running_ = count;
  for (int rank = first; rank < first + count; ++rank) has_work_[rank] = 1;
  changed_.notify_all();
  changed_.wait(lock, [this] { return running_ == 0; });
  work_ = nullptr;
  return failure_;
}

void RankGroup::Loop(int rank) {
  for (;;) {
    const absl::FunctionRef<absl::Status(int)>* work;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [this, rank] { return has_work_[rank] != 0 || ending_; });
      if (has_work_[rank] == 0) return;
      has_work_[rank] = 0;
      work = work_;
    }
    const absl::Status status = (*work)(rank);
    bool first = false;
    if (!status.ok()) {
      std::lock_guard<std::mutex> lock(mutex_);
      first = failure_.ok();
      if (first) failure_ = status;
    }
    if (first) on_failure_(rank, status);
    std::lock_guard<std::mutex> lock(mutex_);
    if (--running_ == 0) changed_.notify_all();
  }
}

}  // namespace pipec
