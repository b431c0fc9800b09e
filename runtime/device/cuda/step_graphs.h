// Steps as CUDA graphs: what ranks enqueue the second time is captured, from then on it is launched.
//
// All ranks whose messages are events are in one capture, on one GPU or on several: each rank's stream joins by an
// event, its thread enqueues in turn with the others (capture_turn.h), and the streams of its messages join by the
// events that they wait for. A graph of each GPU's own, with event nodes between them (cudaEventRecordExternal,
// cudaEventWaitExternal), would not do: a wait node waits for what was recorded when it runs, which may still be
// the record of the step before. Ranks with messages of another kind (NCCL's kernels wait for each other
// themselves) have a StepGraphs each.
#pragma once

#include <driver_types.h>

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/device/cuda/cuda_stream.h"

namespace pipec {

class StepGraphs {
 public:
  // Without `capture` everything is enqueued as it is each time (--no-graph).
  StepGraphs(int ranks, bool capture) : ranks_(ranks), capture_(capture) {}
  ~StepGraphs();
  StepGraphs(const StepGraphs&) = delete;
  StepGraphs& operator=(const StepGraphs&) = delete;

  // What belongs to a rank: events of its GPU, and the key that it has come with.
  class Member {
   public:
    // Of the calling thread's GPU.
    static absl::StatusOr<std::unique_ptr<Member>> Create(int gpu);
    ~Member();

   private:
    friend class StepGraphs;
    int gpu_ = 0;
    cudaEvent_t ready_ = nullptr, joined_ = nullptr;
    int64_t key_ = 0;
  };

  // LaggingDevice's.
  absl::Status Repeat(Member& member, CudaStream& stream, int64_t key,
                      absl::FunctionRef<absl::Status()> enqueue, absl::Time deadline);
  void Abort(const absl::Status& status);

  // Gives all graphs back, when no rank is in Repeat.
  void Forget();

 private:
  // Returns when all ranks have come, or the first failure of any; the last to come runs `last` before the others
  // go on.
  absl::Status Meet(Member& member, absl::Time deadline, absl::FunctionRef<absl::Status()> last);
  // The same for ranks that may have failed, and those do not wait: what has begun is ended by the last in any case.
  absl::Status Leave(Member& member, const absl::Status& status, absl::Time deadline,
                     absl::FunctionRef<absl::Status()> last);
  absl::Status Come(std::unique_lock<std::mutex>& lock, Member& member, absl::Time deadline,
                    absl::FunctionRef<absl::Status()> last);
  absl::Status Capture(Member& member, CudaStream& stream, absl::FunctionRef<absl::Status()> enqueue,
                       absl::Time deadline);
  // By the last to come, under the lock.
  absl::Status Decide();
  absl::Status Begin();
  absl::Status End();
  absl::Status Launch();

  const int ranks_;
  const bool capture_;
  std::mutex turn_;
  std::mutex mutex_;  // of all below
  std::condition_variable changed_;
  std::vector<Member*> come_;  // to this meeting
  int64_t meetings_ = 0;
  absl::Status result_;            // of the last meeting
  absl::Status failure_;           // the first of any rank
  cudaStream_t stream_ = nullptr;  // the graphs run on it
  int gpu_ = 0;                    // its
  cudaEvent_t forked_ = nullptr, ended_ = nullptr;
  struct Work {
    bool seen = false;
    cudaGraphExec_t graph = nullptr;
  };
  std::map<std::map<const Member*, int64_t>, Work> works_;  // by the key of each rank
  Work* work_ = nullptr;                                    // what the ranks have come for
  enum class Next { kEnqueue, kCapture, kDone } next_ = Next::kEnqueue;
};

}  // namespace pipec
