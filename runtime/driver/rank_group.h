// The ranks of one process, a thread each. Work is handed to all of them at once and waited for together.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace pipec {

class RankGroup {
 public:
  // `on_failure(rank, status)` is called once, by the thread of the first rank that fails, before any other
  // can learn of it: it ends the waits of the others.
  RankGroup(int ranks, std::function<void(int rank, const absl::Status&)> on_failure);
  ~RankGroup();

  // Runs `work(rank)` on every rank's thread and returns when all are done: the status of the rank that
  // failed first.
  absl::Status RunAll(absl::FunctionRef<absl::Status(int rank)> work);
  // The same on one rank's thread.
  absl::Status RunOn(int rank, absl::FunctionRef<absl::Status(int rank)> work);

  int size() const { return static_cast<int>(threads_.size()); }

 private:
  absl::Status Run(int first, int count, absl::FunctionRef<absl::Status(int rank)> work);
  void Loop(int rank);

  std::function<void(int, const absl::Status&)> on_failure_;
  // The standard's mutex: a sanitizer sees through it wherever the library was built.
  std::mutex mutex_;
  std::condition_variable changed_;
  const absl::FunctionRef<absl::Status(int)>* work_ = nullptr;
  std::vector<char> has_work_;
  int running_ = 0;
  bool ending_ = false;
  absl::Status failure_;
  std::vector<std::thread> threads_;
};

}  // namespace pipec
