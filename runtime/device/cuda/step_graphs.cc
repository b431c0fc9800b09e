#include "runtime/device/cuda/step_graphs.h"

#include <cuda_runtime_api.h>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cuda/capture_turn.h"
#include "runtime/device/cuda/cuda_status.h"

namespace pipec {
namespace {

absl::Status NewEvent(cudaEvent_t* event) {
  RETURN_IF_CUDA_ERROR(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
  return absl::OkStatus();
}

// Runs `work` with another GPU as the calling thread's.
absl::Status OnGpu(int gpu, absl::FunctionRef<absl::Status()> work) {
  int own = 0;
  RETURN_IF_CUDA_ERROR(cudaGetDevice(&own));
  if (own == gpu) return work();
  RETURN_IF_CUDA_ERROR(cudaSetDevice(gpu));
  absl::Status status = work();
  status.Update(CudaStatus(cudaSetDevice(own), "cudaSetDevice"));
  return status;
}

}  // namespace

absl::StatusOr<std::unique_ptr<StepGraphs::Member>> StepGraphs::Member::Create(int gpu) {
  auto member = std::make_unique<Member>();
  member->gpu_ = gpu;
  RETURN_IF_ERROR(NewEvent(&member->ready_));
  RETURN_IF_ERROR(NewEvent(&member->joined_));
  return member;
}

StepGraphs::Member::~Member() {
  for (cudaEvent_t event : {ready_, joined_}) {
    if (event != nullptr) cudaEventDestroy(event);
  }
}

StepGraphs::~StepGraphs() {
  Forget();
  for (cudaEvent_t event : {forked_, ended_}) {
    if (event != nullptr) cudaEventDestroy(event);
  }
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
}

void StepGraphs::Forget() {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [keys, work] : works_) {
    if (work.graph != nullptr) cudaGraphExecDestroy(work.graph);
  }
  works_.clear();
}

absl::Status StepGraphs::Repeat(Member& member, CudaStream& stream, int64_t key,
                                absl::FunctionRef<absl::Status()> enqueue, absl::Time deadline) {
  if (!capture_) return enqueue();
  member.key_ = key;
  RETURN_IF_CUDA_ERROR(cudaEventRecord(member.ready_, stream.get()));
  RETURN_IF_ERROR(Meet(member, deadline, [&] { return Decide(); }));
  // No other meeting ends before this rank has come to it.
  if (next_ == Next::kEnqueue) return enqueue();
  if (next_ == Next::kCapture) RETURN_IF_ERROR(Capture(member, stream, enqueue, deadline));
  RETURN_IF_CUDA_ERROR(cudaStreamWaitEvent(stream.get(), ended_, 0));
  return absl::OkStatus();
}

void StepGraphs::Abort(const absl::Status& status) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (failure_.ok()) failure_ = status;
  changed_.notify_all();
}

absl::Status StepGraphs::Meet(Member& member, absl::Time deadline, absl::FunctionRef<absl::Status()> last) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!failure_.ok()) return failure_;
  return Come(lock, member, deadline, last);
}

absl::Status StepGraphs::Leave(Member& member, const absl::Status& status, absl::Time deadline,
                               absl::FunctionRef<absl::Status()> last) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (failure_.ok()) failure_ = status;
  return Come(lock, member, deadline, last);
}

absl::Status StepGraphs::Come(std::unique_lock<std::mutex>& lock, Member& member, absl::Time deadline,
                              absl::FunctionRef<absl::Status()> last) {
  come_.push_back(&member);
  if (static_cast<int>(come_.size()) == ranks_) {
    result_ = last();
    if (failure_.ok()) failure_ = result_;
    come_.clear();
    ++meetings_;
    changed_.notify_all();
    return result_;
  }
  const int64_t meeting = meetings_;
  const auto over = [&] { return meetings_ != meeting || !failure_.ok(); };
  if (!changed_.wait_until(lock, absl::ToChronoTime(deadline), over)) {
    failure_ = absl::DeadlineExceededError(absl::StrCat("only ", come_.size(), " of ", ranks_,
                                                        " ranks came to a step's graph in time (--timeout)"));
  }
  changed_.notify_all();
  // Who has met goes on, even if a rank has failed since: what the meeting has begun, all must end.
  return meetings_ != meeting ? result_ : failure_;
}

absl::Status StepGraphs::Decide() {
  std::map<const Member*, int64_t> keys;
  for (const Member* member : come_) keys[member] = member->key_;
  work_ = &works_[keys];
  if (work_->graph != nullptr) {
    next_ = Next::kDone;
    return Launch();
  }
  next_ = work_->seen ? Next::kCapture : Next::kEnqueue;
  if (work_->seen) return Begin();
  work_->seen = true;
  return absl::OkStatus();
}

// Captures are relaxed: meanwhile other threads, and those that wait for their turn, may make calls that have
// nothing to do with it, and whoever comes last ends it.
absl::Status StepGraphs::Begin() {
  if (stream_ == nullptr) {
    gpu_ = come_.back()->gpu_;
    RETURN_IF_CUDA_ERROR(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    RETURN_IF_ERROR(NewEvent(&forked_));
    RETURN_IF_ERROR(NewEvent(&ended_));
  }
  RETURN_IF_CUDA_ERROR(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed));
  const absl::Status status = CudaStatus(cudaEventRecord(forked_, stream_), "cudaEventRecord");
  cudaGraph_t graph = nullptr;
  if (!status.ok()) cudaStreamEndCapture(stream_, &graph);
  if (graph != nullptr) cudaGraphDestroy(graph);
  return status;
}

absl::Status StepGraphs::Capture(Member& member, CudaStream& stream,
                                 absl::FunctionRef<absl::Status()> enqueue, absl::Time deadline) {
  absl::Status status;
  {
    const cuda::CaptureTurn turn(turn_);
    status = CudaStatus(cudaStreamWaitEvent(stream.get(), forked_, 0), "cudaStreamWaitEvent");
    if (status.ok()) status = enqueue();
    if (status.ok()) status = CudaStatus(cudaEventRecord(member.joined_, stream.get()), "cudaEventRecord");
  }
  return Leave(member, status, deadline, [&] { return End(); });
}

absl::Status StepGraphs::End() {
  absl::Status status = failure_;
  for (const Member* member : come_) {
    if (status.ok())
      status = CudaStatus(cudaStreamWaitEvent(stream_, member->joined_, 0), "cudaStreamWaitEvent");
  }
  cudaGraph_t graph = nullptr;
  // Also of what went wrong, so that the streams are free again.
  const cudaError_t ended = cudaStreamEndCapture(stream_, &graph);
  if (status.ok()) status = CudaStatus(ended, "cudaStreamEndCapture");
  if (status.ok()) status = CudaStatus(cudaGraphInstantiate(&work_->graph, graph, 0), "cudaGraphInstantiate");
  if (graph != nullptr) cudaGraphDestroy(graph);
  return status.ok() ? Launch() : status;
}

absl::Status StepGraphs::Launch() {
  return OnGpu(gpu_, [this]() -> absl::Status {
    for (const Member* member : come_) RETURN_IF_CUDA_ERROR(cudaStreamWaitEvent(stream_, member->ready_, 0));
    RETURN_IF_CUDA_ERROR(cudaGraphLaunch(work_->graph, stream_));
    RETURN_IF_CUDA_ERROR(cudaEventRecord(ended_, stream_));
    return absl::OkStatus();
  });
}

}  // namespace pipec
