// An error injected at any call comes back from that call, and from nothing later; nothing hangs, and the next run
// is right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "runtime/device/cuda/launch.h"
#include "tests/cuda_emulation/control.h"

namespace cuda_emulation {
namespace {

__global__ void AddTo(int* x, int value) { x[threadIdx.x] += value; }

// What a run holds, given back whatever happened.
struct Held {
  int* memory = nullptr;
  int* pinned = nullptr;
  cudaStream_t streams[2] = {};
  cudaEvent_t events[2] = {};
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  ~Held() {
    for (cudaStream_t stream : streams) {
      if (stream) cudaStreamSynchronize(stream);
    }
    if (exec) cudaGraphExecDestroy(exec);
    if (graph) cudaGraphDestroy(graph);
    for (cudaEvent_t event : events) {
      if (event) cudaEventDestroy(event);
    }
    for (cudaStream_t stream : streams) {
      if (stream) cudaStreamDestroy(stream);
    }
    if (memory) cudaFree(memory);
    if (pinned) cudaFreeHost(pinned);
  }
};

absl::Status EnqueueStep(Held& held) {
  auto& [memory, pinned, streams, events, graph, exec] = held;
  if (absl::Status status = pipec::Launch(AddTo, 1, 32, streams[0], memory, 1); !status.ok()) return status;
  RETURN_IF_CUDA_ERROR(cudaEventRecord(events[0], streams[0]));
  RETURN_IF_CUDA_ERROR(cudaStreamWaitEvent(streams[1], events[0], 0));
  if (absl::Status status = pipec::Launch(AddTo, 1, 32, streams[1], memory, 10); !status.ok()) return status;
  RETURN_IF_CUDA_ERROR(cudaEventRecord(events[1], streams[1]));
  RETURN_IF_CUDA_ERROR(cudaStreamWaitEvent(streams[0], events[1], 0));
  return absl::OkStatus();
}

absl::Status Train(std::vector<int>& result) {
  Held held;
  RETURN_IF_CUDA_ERROR(cudaSetDevice(0));
  RETURN_IF_CUDA_ERROR(cudaMalloc(reinterpret_cast<void**>(&held.memory), 32 * sizeof(int)));
  RETURN_IF_CUDA_ERROR(cudaMallocHost(reinterpret_cast<void**>(&held.pinned), 32 * sizeof(int)));
  for (cudaStream_t& stream : held.streams)
    RETURN_IF_CUDA_ERROR(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (cudaEvent_t& event : held.events)
    RETURN_IF_CUDA_ERROR(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  RETURN_IF_CUDA_ERROR(cudaMemsetAsync(held.memory, 0, 32 * sizeof(int), held.streams[0]));
  if (absl::Status status = EnqueueStep(held); !status.ok()) return status;
  RETURN_IF_CUDA_ERROR(cudaStreamBeginCapture(held.streams[0], cudaStreamCaptureModeThreadLocal));
  const absl::Status captured = EnqueueStep(held);
  const cudaError_t ended = cudaStreamEndCapture(held.streams[0], &held.graph);
  if (!captured.ok()) return captured;
  RETURN_IF_CUDA_ERROR(ended);
  RETURN_IF_CUDA_ERROR(cudaGraphInstantiate(&held.exec, held.graph, 0));
  for (int step = 0; step < 2; ++step) RETURN_IF_CUDA_ERROR(cudaGraphLaunch(held.exec, held.streams[0]));
  RETURN_IF_CUDA_ERROR(
      cudaMemcpyAsync(held.pinned, held.memory, 32 * sizeof(int), cudaMemcpyDeviceToHost, held.streams[0]));
  cudaError_t error;
  while ((error = cudaStreamQuery(held.streams[0])) == cudaErrorNotReady) continue;
  RETURN_IF_CUDA_ERROR(error);
  result.assign(held.pinned, held.pinned + 32);
  return absl::OkStatus();
}

TEST(InjectedErrors, EachCallReturnsItsOwn) {
  const std::vector<int> wanted(32, 33);
  std::vector<int> result;
  const LiveObjects before = CountLiveObjects();
  SetSeed(0);
  ASSERT_TRUE(Train(result).ok());
  ASSERT_EQ(result, wanted);
  ASSERT_EQ(CountLiveObjects(), before);
  const int64_t calls = CallCount();
  ASSERT_GT(calls, 30);
  std::set<std::string> failed;
  for (int64_t k = 1; k <= calls; ++k) {
    SetSeed(0);
    FailCall(k, cudaErrorNotSupported);
    const absl::Status status = Train(result);
    const std::vector<std::string> reports = TakeReports();
    // "cudaMalloc: the injected error, at call 2"
    ASSERT_FALSE(reports.empty()) << "call " << k;
    const std::string name = reports[0].substr(0, reports[0].find(':'));
    failed.insert(name);
    // The program names most calls by their own text.
    const std::string text = name == "cudaLaunchKernel"       ? "launching a kernel on 1 x 1 x 1 blocks"
                             : name == "cudaStreamEndCapture" ? "ended"
                             : name == "cudaStreamQuery"      ? "error"
                                                              : name;
    const bool at_the_end =
        name.find("Destroy") != std::string::npos || name.find("Free") != std::string::npos;
    if (!at_the_end && name != "cudaStreamSynchronize") {
      EXPECT_THAT(std::string(status.message()), testing::HasSubstr(text)) << "call " << k;
    }
    EXPECT_EQ(CountLiveObjects(), before) << "call " << k << ", " << name;
    SetSeed(1);
    ASSERT_TRUE(Train(result).ok()) << "after call " << k;
    ASSERT_EQ(result, wanted);
  }
  EXPECT_GE(failed.size(), 15u);
}

TEST(InjectedErrors, OfOneName) {
  std::vector<int> result;
  SetSeed(0);
  ASSERT_TRUE(Train(result).ok());
  const std::map<std::string, int64_t> counts = CallCounts();
  EXPECT_EQ(counts.at("cudaEventRecord"), 4);
  EXPECT_EQ(counts.count("cudaMemcpy"), 0u);
  int64_t all = 0;
  for (const auto& [name, count] : counts) all += count;
  EXPECT_EQ(all, CallCount());
  for (int64_t k : {1, 4, 5}) {
    SetSeed(0);
    FailCallOf("cudaEventRecord", k, cudaErrorNotSupported);
    const absl::Status status = Train(result);
    EXPECT_EQ(status.ok(), k == 5) << status;
    EXPECT_EQ(CallCounts().at("cudaEventRecord"), std::min<int64_t>(k, 4));
  }
  SetSeed(0);
}

}  // namespace
}  // namespace cuda_emulation
