// Which enqueued operation runs next. Nothing runs when it is enqueued, or a little, as the seed says; who waits
// lets run any operation that order allows, one at a time, until what it waits for is done.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/cuda_emulation/operation.h"

struct CUstream_st;

namespace cuda_emulation {

class Machine;

class Scheduler {
 public:
  explicit Scheduler(Machine& machine) : machine_(machine) {}

  // The next operation of a stream: after the stream's last one, what legacy streams ask for, and `after` (null:
  // nothing).
  std::shared_ptr<Operation> Enqueue(CUstream_st& stream, std::string name, Work work,
                                     std::function<bool()> may_run = {},
                                     std::shared_ptr<const std::vector<OperandRange>> operands = nullptr,
                                     const std::vector<std::shared_ptr<Operation>>& after = {});
  // An operation with its chain and position given.
  void Add(const std::shared_ptr<Operation>& operation, const std::vector<std::shared_ptr<Operation>>& after);

  // Runs operations until this one is done. The lock is released while another host thread must enqueue something
  // first; false if none does for `patience`.
  bool RunUntil(const std::shared_ptr<Operation>& operation, std::unique_lock<std::mutex>& lock);
  // Runs a few operations, as if some time had passed; false if there is none that can run.
  bool RunSome();

  // The host has waited for this operation: all that is enqueued from now on comes after it.
  void HostWaitedFor(const Operation& operation) { host_.Join(operation.clock); }
  // Whether the host has waited for it or for something behind it.
  bool HostIsBehind(const Operation& operation) const {
    return host_.Has(operation.chain, operation.position);
  }
  // Whether nothing enqueued will still run.
  bool Idle() const { return pending_ == 0; }
  void StartAfresh();

  std::chrono::milliseconds patience{20000};

 private:
  bool RunOne();

  Machine& machine_;
  Clock host_;
  std::vector<std::shared_ptr<Operation>> ready_;
  size_t pending_ = 0;
  bool eager_ = false;   // some operations run at once
  int depth_first_ = 0;  // of 8 choices, how many go on with what became possible last
};

}  // namespace cuda_emulation
