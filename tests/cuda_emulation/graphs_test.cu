// Capture follows the CUDA programming guide ("Creating a Graph Using Stream Capture"); a graph does what its
// streams would.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "runtime/device/cuda/launch.h"
#include "tests/cuda_emulation/control.h"
#include "tests/cuda_emulation/device_array.h"

namespace cuda_emulation {
namespace {

using testing::HasSubstr;

constexpr int kCount = 40;

__global__ void Scale(float* out, const float* in, float scale, float offset) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < kCount) out[i] = scale * in[i] + offset;
}

__global__ void Add(float* out, const float* a, const float* b) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < kCount) out[i] = a[i] + b[i];
}

class Graphs : public testing::Test {
 protected:
  Graphs() {
    SetSeed(0);
    for (cudaStream_t* stream : {&a_, &b_, &other_})
      EXPECT_EQ(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking), cudaSuccess);
    for (cudaEvent_t* event : {&fork_, &join_})
      EXPECT_EQ(cudaEventCreateWithFlags(event, cudaEventDisableTiming), cudaSuccess);
  }
  ~Graphs() override {
    SetSeed(0);  // ends captures
    for (cudaStream_t stream : {a_, b_, other_}) EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    for (cudaEvent_t event : {fork_, join_}) EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  }

  void Begin(cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal) {
    ASSERT_EQ(cudaStreamBeginCapture(a_, mode), cudaSuccess);
  }
  // The capture's end has this error, and gives no graph.
  void ExpectEnd(cudaError_t error) {
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(a_, &graph), error);
    EXPECT_EQ(graph, nullptr);
    cudaStreamCaptureStatus status;
    EXPECT_EQ(cudaStreamIsCapturing(a_, &status), cudaSuccess);
    EXPECT_EQ(status, cudaStreamCaptureStatusNone);
  }

  // x = 2 x + 1 on one stream; y = 3 x and z = -x at once; x = y + z.
  absl::Status Step(float* x, float* y, float* z, bool join = true, float factor = 3) {
    if (absl::Status status = pipec::Launch(Scale, 2, 32, a_, x, x, 2.0f, 1.0f); !status.ok()) return status;
    RETURN_IF_CUDA_ERROR(cudaEventRecord(fork_, a_));
    RETURN_IF_CUDA_ERROR(cudaStreamWaitEvent(b_, fork_, 0));
    if (absl::Status status = pipec::Launch(Scale, 2, 32, a_, y, x, factor, 0.0f); !status.ok())
      return status;
    if (absl::Status status = pipec::Launch(Scale, 2, 32, b_, z, x, -1.0f, 0.0f); !status.ok()) return status;
    RETURN_IF_CUDA_ERROR(cudaEventRecord(join_, b_));
    if (join) RETURN_IF_CUDA_ERROR(cudaStreamWaitEvent(a_, join_, 0));
    return pipec::Launch(Add, 2, 32, a_, x, y, z);
  }

  cudaStream_t a_, b_, other_;
  cudaEvent_t fork_, join_;
};

TEST_F(Graphs, ReplayEqualsEager) {
  std::vector<float> eager;
  for (int seed = 0; seed < 50; ++seed) {
    SetSeed(seed);
    DeviceArray<float> x(std::vector<float>(kCount, 1)), y(std::vector<float>(kCount, 0)),
        z(std::vector<float>(kCount, 0));
    for (int step = 0; step < 3; ++step) ASSERT_TRUE(Step(x.data(), y.data(), z.data()).ok());
    const std::vector<float> result = x.Read();
    if (seed == 0) eager = result;
    ASSERT_EQ(result, eager);
    ASSERT_THAT(TakeReports(), testing::IsEmpty());
  }
  EXPECT_EQ(eager, std::vector<float>(kCount, 106));  // x = 4 x + 2, three times
  for (int seed = 0; seed < 50; ++seed) {
    SetSeed(seed);
    DeviceArray<float> x(std::vector<float>(kCount, 1)), y(std::vector<float>(kCount, 0)),
        z(std::vector<float>(kCount, 0));
    Begin();
    ASSERT_TRUE(Step(x.data(), y.data(), z.data()).ok());
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    ASSERT_EQ(cudaStreamEndCapture(a_, &graph), cudaSuccess);
    size_t nodes = 0;
    ASSERT_EQ(cudaGraphGetNodes(graph, nullptr, &nodes), cudaSuccess);
    EXPECT_EQ(nodes, 4u);
    ASSERT_EQ(x.Read(), std::vector<float>(kCount, 1));  // nothing has run
    ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    ASSERT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    for (int step = 0; step < 3; ++step) ASSERT_EQ(cudaGraphLaunch(exec, step == 1 ? b_ : a_), cudaSuccess);
    ASSERT_EQ(x.Read(), eager) << "seed " << seed;
    ASSERT_THAT(TakeReports(), testing::IsEmpty()) << "seed " << seed;
    ASSERT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  }
}

TEST_F(Graphs, UpdateTakesNewArgumentsOfTheSameGraph) {
  DeviceArray<float> x(std::vector<float>(kCount, 1)), y(std::vector<float>(kCount, 0)),
      z(std::vector<float>(kCount, 0));
  cudaGraph_t graphs[3] = {};
  for (int i = 0; i < 3; ++i) {
    Begin();
    ASSERT_TRUE(Step(x.data(), y.data(), z.data(), true, i == 0 ? 3 : 5).ok());
    if (i == 2) {
      ASSERT_EQ(cudaMemsetAsync(y.data(), 0, 4, a_), cudaSuccess);
    }
    ASSERT_EQ(cudaStreamEndCapture(a_, &graphs[i]), cudaSuccess);
  }
  cudaGraphExec_t exec = nullptr;
  cudaGraphExecUpdateResultInfo info;
  ASSERT_EQ(cudaGraphInstantiate(&exec, graphs[0], 0), cudaSuccess);
  ASSERT_EQ(cudaGraphExecUpdate(exec, graphs[2], &info), cudaErrorGraphExecUpdateFailure);
  EXPECT_EQ(info.result, cudaGraphExecUpdateErrorTopologyChanged);
  ASSERT_EQ(cudaGraphExecUpdate(exec, graphs[1], &info), cudaSuccess);
  EXPECT_EQ(info.result, cudaGraphExecUpdateSuccess);
  ASSERT_EQ(cudaGraphLaunch(exec, a_), cudaSuccess);
  EXPECT_EQ(x.Read(), std::vector<float>(kCount, (2 * 1 + 1) * (5 - 1)));
  cudaGraphExecDestroy(exec);
  for (cudaGraph_t graph : graphs) cudaGraphDestroy(graph);
}

TEST_F(Graphs, AForkThatIsNotJoined) {
  DeviceArray<float> x(std::vector<float>(kCount, 1)), y(std::vector<float>(kCount, 0)),
      z(std::vector<float>(kCount, 0));
  Begin();
  ASSERT_TRUE(Step(x.data(), y.data(), z.data(), /*join=*/false).ok());
  ExpectEnd(cudaErrorStreamCaptureUnjoined);
}

// A wait that is missing inside the graph, where the fork is joined after all, is a race when it runs.
TEST_F(Graphs, AMissingWaitInsideAGraph) {
  int seen = 0;
  for (int seed = 0; seed < 50; ++seed) {
    SetSeed(seed);
    DeviceArray<float> x(std::vector<float>(kCount, 1)), y(std::vector<float>(kCount, 0)),
        z(std::vector<float>(kCount, 0));
    Begin();
    ASSERT_TRUE(Step(x.data(), y.data(), z.data(), /*join=*/false).ok());
    ASSERT_EQ(cudaStreamWaitEvent(a_, join_, 0), cudaSuccess);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    ASSERT_EQ(cudaStreamEndCapture(a_, &graph), cudaSuccess);
    ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    ASSERT_EQ(cudaGraphLaunch(exec, a_), cudaSuccess);
    seen += cudaStreamSynchronize(a_) != cudaSuccess && TakeReports().at(0).find("race") != std::string::npos;
    cudaGraphDestroy(graph);
    cudaGraphExecDestroy(exec);
  }
  EXPECT_GE(seen, 48);
}

TEST_F(Graphs, WaitingForWorkOutsideOfTheCapture) {
  ASSERT_EQ(cudaEventRecord(fork_, other_), cudaSuccess);
  Begin();
  EXPECT_EQ(cudaStreamWaitEvent(a_, fork_, 0), cudaErrorStreamCaptureIsolation);
  ExpectEnd(cudaErrorStreamCaptureInvalidated);
}

TEST_F(Graphs, AskingForTheStateOfACapture) {
  for (const auto& ask : std::vector<std::function<cudaError_t()>>{[&] { return cudaStreamSynchronize(a_); },
                                                                   [&] { return cudaStreamQuery(a_); },
                                                                   [&] { return cudaDeviceSynchronize(); }}) {
    Begin(cudaStreamCaptureModeRelaxed);
    EXPECT_EQ(ask(), cudaErrorStreamCaptureUnsupported);
    ExpectEnd(cudaErrorStreamCaptureInvalidated);
  }
  for (const auto& ask : std::vector<std::function<cudaError_t()>>{
           [&] { return cudaEventQuery(fork_); }, [&] { return cudaEventSynchronize(fork_); }}) {
    Begin(cudaStreamCaptureModeRelaxed);
    ASSERT_EQ(cudaEventRecord(fork_, a_), cudaSuccess);
    EXPECT_EQ(ask(), cudaErrorCapturedEvent);
    ExpectEnd(cudaErrorStreamCaptureInvalidated);
  }
}

// In a relaxed capture the same calls are allowed.
TEST_F(Graphs, UnsafeCalls) {
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 4), cudaSuccess);
  const std::vector<std::function<cudaError_t()>> unsafe = {
      [&] {
        void* more = nullptr;
        const cudaError_t error = cudaMalloc(&more, 4);
        if (error == cudaSuccess) cudaFree(more);
        return error;
      },
      [&] { return cudaMemset(memory, 0, 4); },
      [&] { return cudaStreamSynchronize(other_); },
      [&] { return cudaEventQuery(join_); },
  };
  for (const auto& call : unsafe) {
    Begin(cudaStreamCaptureModeThreadLocal);
    EXPECT_EQ(call(), cudaErrorStreamCaptureUnsupported);
    ExpectEnd(cudaErrorStreamCaptureInvalidated);
    Begin(cudaStreamCaptureModeRelaxed);
    EXPECT_EQ(call(), cudaSuccess);
    cudaGraph_t graph = nullptr;
    ASSERT_EQ(cudaStreamEndCapture(a_, &graph), cudaSuccess);
    ASSERT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  }
  // Another host thread suffers from a global capture only, unless it says that it is relaxed.
  for (const cudaStreamCaptureMode mode : {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal}) {
    Begin(mode);
    std::thread([&] {
      cudaStreamCaptureMode relaxed = cudaStreamCaptureModeRelaxed;
      EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&relaxed), cudaSuccess);
      EXPECT_EQ(relaxed, cudaStreamCaptureModeGlobal);
      EXPECT_EQ(unsafe[0](), cudaSuccess);
      EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&relaxed), cudaSuccess);
      EXPECT_EQ(unsafe[0](),
                mode == cudaStreamCaptureModeGlobal ? cudaErrorStreamCaptureUnsupported : cudaSuccess);
    }).join();
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(a_, &graph),
              mode == cudaStreamCaptureModeGlobal ? cudaErrorStreamCaptureInvalidated : cudaSuccess);
    if (graph) {
      ASSERT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    }
  }
  // So may the thread that captures.
  Begin();
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
  EXPECT_EQ(unsafe[0](), cudaSuccess);
  EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
  EXPECT_EQ(unsafe[0](), cudaErrorStreamCaptureUnsupported);
  ExpectEnd(cudaErrorStreamCaptureInvalidated);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  ASSERT_EQ(cudaFree(memory), cudaSuccess);
}

TEST_F(Graphs, BeginsAndEnds) {
  EXPECT_EQ(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeRelaxed), cudaErrorStreamCaptureUnsupported);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(a_, &graph), cudaErrorIllegalState);
  Begin();
  EXPECT_EQ(cudaStreamBeginCapture(a_, cudaStreamCaptureModeRelaxed), cudaErrorIllegalState);
  std::thread([&] { EXPECT_EQ(cudaStreamEndCapture(a_, &graph), cudaErrorStreamCaptureWrongThread); }).join();
  ASSERT_EQ(cudaEventRecord(fork_, a_), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(b_, fork_, 0), cudaSuccess);
  EXPECT_EQ(cudaStreamEndCapture(b_, &graph), cudaErrorStreamCaptureUnmatched);
  EXPECT_EQ(cudaMemsetAsync(nullptr, 0, 4, b_), cudaErrorInvalidValue);
  ExpectEnd(cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(cudaStreamWaitEvent(b_, fork_, 0), cudaErrorCapturedEvent);
}

TEST_F(Graphs, TwoCapturesDoNotMeet) {
  Begin();
  ASSERT_EQ(cudaStreamBeginCapture(b_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(fork_, a_), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(b_, fork_, 0), cudaErrorStreamCaptureMerge);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(b_, &graph), cudaErrorStreamCaptureInvalidated);
  ExpectEnd(cudaErrorStreamCaptureInvalidated);
}

// The legacy stream stands for all blocking streams.
TEST_F(Graphs, TheLegacyStreamWhileABlockingStreamCaptures) {
  DeviceArray<float> x(std::vector<float>(kCount, 1));
  cudaStream_t blocking = nullptr;
  ASSERT_EQ(cudaStreamCreate(&blocking), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed), cudaSuccess);
  EXPECT_EQ(cudaMemsetAsync(x.data(), 0, 4, nullptr), cudaErrorStreamCaptureImplicit);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(blocking, &graph), cudaErrorStreamCaptureInvalidated);
  cudaStreamDestroy(blocking);
  // Streams that are not blocking have nothing to do with it.
  Begin(cudaStreamCaptureModeRelaxed);
  EXPECT_EQ(cudaMemsetAsync(x.data(), 0, 4, nullptr), cudaSuccess);
  ASSERT_EQ(cudaStreamEndCapture(a_, &graph), cudaSuccess);
  cudaGraphDestroy(graph);
}

}  // namespace
}  // namespace cuda_emulation
