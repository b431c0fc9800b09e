// Operations that need another rank's part, as a library's double enqueues them.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/cuda_emulation/call.h"
#include "tests/cuda_emulation/capture.h"
#include "tests/cuda_emulation/control.h"
#include "tests/cuda_emulation/device_array.h"
#include "tests/cuda_emulation/transfer.h"

namespace cuda_emulation {
namespace {

// A value that one stream puts and another takes.
struct Box {
  int puts = 0, takes = 0;
};

cudaError_t Put(cudaStream_t handle, Box& box) {
  return Call("Put", [&](Machine& machine, auto&) {
    return Submit(machine, *machine.StreamOf(handle), "a put", cudaGraphNodeTypeKernel,
                  [&box](const Operation&) -> std::optional<Failure> {
                    ++box.puts;
                    return std::nullopt;
                  });
  });
}

cudaError_t Take(cudaStream_t handle, Box& box, int* to) {
  return Call("Take", [&](Machine& machine, auto&) {
    return Submit(
        machine, *machine.StreamOf(handle), "a take", cudaGraphNodeTypeKernel,
        [&box, to](const Operation& operation) -> std::optional<Failure> {
          if (auto failure = CheckRange(operation, to, sizeof(int), Access::kWrite)) return failure;
          *to = ++box.takes;
          return std::nullopt;
        },
        [&box] { return box.takes < box.puts; });
  });
}

class Meeting : public testing::Test {
 protected:
  Meeting() {
    SetSeed(0);
    for (cudaStream_t* stream : {&a_, &b_}) {
      EXPECT_EQ(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking), cudaSuccess);
    }
  }
  ~Meeting() override {
    SetPatience(std::chrono::seconds(20));
    SetSeed(0);
    for (cudaStream_t stream : {a_, b_}) EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  }
  cudaStream_t a_, b_;
};

TEST_F(Meeting, WaitsForAnotherHostThread) {
  for (int seed = 0; seed < 50; ++seed) {
    SetSeed(seed);
    Box box;
    DeviceArray<int> taken({0});
    ASSERT_EQ(Take(a_, box, taken.data()), cudaSuccess);
    std::thread other([&] { EXPECT_EQ(Put(b_, box), cudaSuccess); });
    // Synchronising and asking both get there.
    if (seed % 2 == 0) {
      ASSERT_EQ(cudaStreamSynchronize(a_), cudaSuccess);
    } else {
      cudaError_t error;
      while ((error = cudaStreamQuery(a_)) == cudaErrorNotReady) continue;
      ASSERT_EQ(error, cudaSuccess);
    }
    other.join();
    EXPECT_EQ(taken.Read(), std::vector<int>{1});
  }
}

TEST_F(Meeting, GivesUpWhereNobodyComes) {
  Box box;
  DeviceArray<int> taken({0});
  ASSERT_EQ(Take(a_, box, taken.data()), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(a_), cudaErrorNotReady);
  SetPatience(std::chrono::milliseconds(5));
  EXPECT_EQ(cudaStreamSynchronize(a_), cudaErrorLaunchTimeout);
  EXPECT_THAT(TakeReports(), testing::ElementsAre(testing::HasSubstr("a take on stream")));
  SetSeed(0);  // so that the memory can be freed
}

// Both in one graph, in either order; every launch takes once.
TEST_F(Meeting, InAGraph) {
  for (int seed = 0; seed < 20; ++seed) {
    SetSeed(seed);
    Box box;
    DeviceArray<int> taken({0});
    cudaEvent_t fork, join;
    for (cudaEvent_t* event : {&fork, &join})
      ASSERT_EQ(cudaEventCreateWithFlags(event, cudaEventDisableTiming), cudaSuccess);
    ASSERT_EQ(cudaStreamBeginCapture(a_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    ASSERT_EQ(cudaEventRecord(fork, a_), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(b_, fork, 0), cudaSuccess);
    ASSERT_EQ(Take(b_, box, taken.data()), cudaSuccess);
    ASSERT_EQ(Put(a_, box), cudaSuccess);
    ASSERT_EQ(cudaEventRecord(join, b_), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(a_, join, 0), cudaSuccess);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    ASSERT_EQ(cudaStreamEndCapture(a_, &graph), cudaSuccess);
    ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    for (int launch = 0; launch < 3; ++launch) ASSERT_EQ(cudaGraphLaunch(exec, a_), cudaSuccess);
    EXPECT_EQ(taken.Read(), std::vector<int>{3});
    EXPECT_THAT(TakeReports(), testing::IsEmpty());
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
    for (cudaEvent_t event : {fork, join}) cudaEventDestroy(event);
  }
}

// An operation of a library is held to its operands too.
TEST_F(Meeting, OperandsOfALibrary) {
  Box box{1, 0};
  DeviceArray<int> memory({0, 0});
  const OperandRanges operands({{memory.data(), sizeof(int), true}});
  ASSERT_EQ(Take(a_, box, memory.data() + 1), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(a_), cudaErrorIllegalAddress);
  EXPECT_THAT(TakeReports(), testing::ElementsAre(testing::HasSubstr("outside its operands")));
  SetSeed(0);
}

}  // namespace
}  // namespace cuda_emulation
