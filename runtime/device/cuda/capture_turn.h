// Several host threads enqueue into one capture, but a graph must not be reached by two at once (CUDA runtime API,
// "Graph object thread safety"): they take turns. Who has to wait for another thread lets others have theirs.
#pragma once

#include <mutex>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace pipec::cuda {

class CaptureTurn {
 public:
  // The calling thread's, as long as the object lives.
  explicit CaptureTurn(std::mutex& turn) : lock_(turn) { current_ = this; }
  ~CaptureTurn() { current_ = nullptr; }
  CaptureTurn(const CaptureTurn&) = delete;
  CaptureTurn& operator=(const CaptureTurn&) = delete;

  // Runs `wait` without the calling thread's turn, if it has one.
  static absl::Status Without(absl::FunctionRef<absl::Status()> wait) {
    if (current_ == nullptr) return wait();
    current_->lock_.unlock();
    const absl::Status status = wait();
    current_->lock_.lock();
    return status;
  }

 private:
  static inline thread_local CaptureTurn* current_ = nullptr;
  std::unique_lock<std::mutex> lock_;
};

}  // namespace pipec::cuda
