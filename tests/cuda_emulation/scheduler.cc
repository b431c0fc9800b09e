#include "tests/cuda_emulation/scheduler.h"

#include <cuda_runtime_api.h>

#include "tests/cuda_emulation/machine.h"

namespace cuda_emulation {
std::shared_ptr<Operation> Scheduler::Enqueue(CUstream_st& stream, std::string name, Work work,
                                              std::function<bool()> may_run,
                                              std::shared_ptr<const std::vector<OperandRange>> operands,
                                              const std::vector<std::shared_ptr<Operation>>& after) {
  auto operation = std::make_shared<Operation>();
  operation->name = std::move(name) + " on " + stream.name;
  operation->device = stream.device;
  operation->chain = stream.chain;
  operation->position = ++stream.position;
  operation->work = std::move(work);
  operation->may_run = std::move(may_run);
  operation->operands = std::move(operands);
  auto all = after;
  all.push_back(stream.last);
  // The legacy stream waits for all blocking streams of its device, and they for it.
  if (!(stream.flags & cudaStreamNonBlocking)) {
    CUstream_st& legacy = machine_.LegacyStream(stream.device);
    if (&legacy == &stream) {
      for (const auto& other : machine_.streams) {
        if (other->device == stream.device && !(other->flags & cudaStreamNonBlocking))
          all.push_back(other->last);
      }
    } else {
      all.push_back(legacy.last);
    }
  }
  Add(operation, all);
  stream.last = operation;
  if (eager_ && machine_.random.Below(4) == 0) RunSome();
  return operation;
}

void Scheduler::Add(const std::shared_ptr<Operation>& operation,
                    const std::vector<std::shared_ptr<Operation>>& after) {
  operation->clock = host_;
  for (const auto& earlier : after) {
    if (!earlier) continue;
    operation->clock.Join(earlier->clock);
    if (earlier->done) continue;
    earlier->next.push_back(operation);
    ++operation->waits_for;
  }
  operation->clock.Set(operation->chain, operation->position);
  operation->run = OperationTable::Get().Add(*operation);
  if (operation->waits_for == 0) ready_.push_back(operation);
  ++pending_;
  machine_.enqueued.notify_all();
}

bool Scheduler::RunOne() {
  if (ready_.empty()) return false;
  const bool newest = machine_.random.Below(8) < static_cast<size_t>(depth_first_);
  const size_t first = newest ? ready_.size() - 1 : machine_.random.Below(ready_.size());
  for (size_t i = 0; i < ready_.size(); ++i) {
    const size_t at = (first + i) % ready_.size();
    const bool broken = machine_.broken.count(ready_[at]->device) > 0;
    if (!broken && ready_[at]->may_run && !ready_[at]->may_run()) continue;
    const std::shared_ptr<Operation> operation = std::move(ready_[at]);
    ready_.erase(ready_.begin() + at);
    if (!broken && operation->work) {
      if (const std::optional<Failure> failure = operation->work(*operation)) {
        machine_.Break(operation->device, {failure->error, operation->name + ": " + failure->report});
      }
    }
    operation->done = true;
    operation->work = nullptr;
    operation->may_run = nullptr;
    --pending_;
    for (const auto& next : operation->next) {
      if (--next->waits_for == 0) ready_.push_back(next);
    }
    operation->next.clear();
    return true;
  }
  return false;
}

bool Scheduler::RunUntil(const std::shared_ptr<Operation>& operation, std::unique_lock<std::mutex>& lock) {
  while (operation && !operation->done) {
    if (RunOne()) continue;
    if (machine_.enqueued.wait_for(lock, patience) == std::cv_status::timeout && !operation->done &&
        !RunOne()) {
      machine_.reports.push_back("waiting for " + operation->name +
                                 " would never end: nothing that is enqueued can run");
      return false;
    }
  }
  return true;
}

bool Scheduler::RunSome() {
  if (!RunOne()) return false;
  for (size_t more = machine_.random.Below(32); more > 0 && RunOne(); --more) {
  }
  return true;
}

void Scheduler::StartAfresh() {
  host_ = Clock();
  ready_.clear();
  pending_ = 0;
  eager_ = machine_.random.Below(2) == 1;
  depth_first_ = static_cast<int>(machine_.random.Below(8));
}

}  // namespace cuda_emulation
