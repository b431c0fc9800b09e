// Streams keep their own order and no other; events order them; a missing event is seen.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <set>
#include <thread>

#include "runtime/device/cuda/launch.h"
#include "tests/cuda_emulation/control.h"
#include "tests/cuda_emulation/device_array.h"

namespace cuda_emulation {
namespace {

using testing::HasSubstr;

constexpr int kCount = 40;

cudaStream_t NewStream() {
  cudaStream_t stream = nullptr;
  EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  return stream;
}

cudaEvent_t NewEvent() {
  cudaEvent_t event = nullptr;
  EXPECT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
  return event;
}

__global__ void Combine(float* out, const float* a, const float* b, float scale, float offset) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < kCount) out[i] = scale * (a[i] + b[i]) + offset;
}

absl::Status Enqueue(cudaStream_t stream, float* out, const float* a, const float* b, float scale,
                     float offset) {
  return pipec::Launch(Combine, 2, 32, stream, out, a, b, scale, offset);
}

void Append(void* text_and_letter) {
  auto& [text, letter] = *static_cast<std::pair<std::string*, char>*>(text_and_letter);
  text->push_back(letter);
}

TEST(Streams, KeepTheirOwnOrderAndNoOther) {
  cudaStream_t streams[2] = {NewStream(), NewStream()};
  std::set<std::string> orders;
  std::vector<std::string> order_of(100);
  for (int run = 0; run < 200; ++run) {
    SetSeed(run % 100);
    std::string order;
    std::pair<std::string*, char> letters[] = {{&order, 'a'}, {&order, 'b'}, {&order, 'x'}, {&order, 'y'}};
    for (int i = 0; i < 4; ++i)
      ASSERT_EQ(cudaLaunchHostFunc(streams[i / 2], Append, &letters[i]), cudaSuccess);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    orders.insert(order);
    if (run >= 100) {
      EXPECT_EQ(order, order_of[run % 100]) << "seed " << run % 100;
    }
    order_of[run % 100] = order;
  }
  EXPECT_EQ(orders, (std::set<std::string>{"abxy", "axby", "axyb", "xaby", "xayb", "xyab"}));
  for (cudaStream_t stream : streams) EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST(Streams, AWaitIsForTheRecordThatWasLastWhenItWasEnqueued) {
  cudaStream_t first = NewStream(), second = NewStream();
  cudaEvent_t event = NewEvent();
  std::set<std::string> orders;
  for (int seed = 0; seed < 100; ++seed) {
    SetSeed(seed);
    std::string order;
    std::pair<std::string*, char> letters[] = {{&order, 'a'}, {&order, 'b'}, {&order, 'x'}};
    ASSERT_EQ(cudaStreamWaitEvent(second, event, 0), cudaSuccess);  // never recorded: nothing to wait for
    ASSERT_EQ(cudaLaunchHostFunc(first, Append, &letters[0]), cudaSuccess);
    ASSERT_EQ(cudaEventRecord(event, first), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(second, event, 0), cudaSuccess);
    ASSERT_EQ(cudaLaunchHostFunc(first, Append, &letters[1]), cudaSuccess);
    ASSERT_EQ(cudaEventRecord(event, first), cudaSuccess);
    ASSERT_EQ(cudaLaunchHostFunc(second, Append, &letters[2]), cudaSuccess);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    orders.insert(order);
  }
  EXPECT_EQ(orders, (std::set<std::string>{"abx", "axb"}));
  cudaEventDestroy(event);
  cudaStreamDestroy(first);
  cudaStreamDestroy(second);
}

// Two rounds of: x on one stream; y and z from it on two others; w from both, which also overwrites x; v from w.
// The waits are numbered; `without` is left out.
struct Waits {
  static constexpr int kCount = 5;
  int without;
  cudaError_t operator()(int number, cudaStream_t stream, cudaEvent_t event) const {
    return number == without ? cudaSuccess : cudaStreamWaitEvent(stream, event, 0);
  }
};

// Empty if anything went wrong.
std::vector<float> RunGraphOfStreams(int without) {
  DeviceArray<float> seed_values(std::vector<float>(kCount, 1)), x(std::vector<float>(kCount, 0)),
      y(std::vector<float>(kCount, 0)), z(std::vector<float>(kCount, 0)), w(std::vector<float>(kCount, 0)),
      v(std::vector<float>(kCount, 0));
  cudaStream_t a = NewStream(), b = NewStream(), c = NewStream();
  cudaEvent_t x_done = NewEvent(), y_done = NewEvent(), z_done = NewEvent(), w_done = NewEvent();
  const Waits wait{without};
  bool ok = true;
  for (int round = 0; round < 2; ++round) {
    ok &= Enqueue(a, x.data(), x.data(), seed_values.data(), 2, round).ok() &&
          cudaEventRecord(x_done, a) == cudaSuccess;
    ok &= wait(0, b, x_done) == cudaSuccess && Enqueue(b, y.data(), x.data(), x.data(), 3, 0).ok() &&
          cudaEventRecord(y_done, b) == cudaSuccess;
    ok &= wait(1, c, x_done) == cudaSuccess && Enqueue(c, z.data(), x.data(), x.data(), 5, 1).ok() &&
          cudaEventRecord(z_done, c) == cudaSuccess;
    ok &= wait(2, a, y_done) == cudaSuccess && wait(3, a, z_done) == cudaSuccess &&
          Enqueue(a, w.data(), y.data(), z.data(), 1, 0).ok();
    ok &= Enqueue(a, x.data(), w.data(), w.data(), 1, 0).ok() && cudaEventRecord(w_done, a) == cudaSuccess;
    ok &= wait(4, b, w_done) == cudaSuccess && Enqueue(b, v.data(), v.data(), w.data(), 1, 0).ok();
  }
  std::vector<float> result = v.Read();
  for (cudaEvent_t event : {x_done, y_done, z_done, w_done}) cudaEventDestroy(event);
  for (cudaStream_t stream : {a, b, c}) cudaStreamDestroy(stream);
  return ok ? result : std::vector<float>();
}

TEST(Streams, EventsOrderThem) {
  // x = 2 (0 + 1) = 2, y = 12, z = 21, w = 33, x = 66; then x = 2 (66 + 1) + 1 = 135, y = 810, z = 1351, w = 2161.
  const std::vector<float> wanted(kCount, 33 + 2161);
  for (int seed = 0; seed < 200; ++seed) {
    SetSeed(seed);
    ASSERT_EQ(RunGraphOfStreams(-1), wanted) << "seed " << seed;
    ASSERT_THAT(TakeReports(), testing::IsEmpty()) << "seed " << seed;
  }
}

TEST(Streams, EveryMissingWaitIsSeen) {
  const std::vector<float> wanted(kCount, 33 + 2161);
  for (int without = 0; without < Waits::kCount; ++without) {
    int seen = 0;
    for (int seed = 0; seed < 100; ++seed) {
      SetSeed(seed);
      const std::vector<float> result = RunGraphOfStreams(without);
      const std::vector<std::string> reports = TakeReports();
      if (!reports.empty()) {
        EXPECT_THAT(reports[0], HasSubstr("race"));
      }
      seen += result != wanted || !reports.empty();
    }
    EXPECT_GE(seen, 95) << "wait " << without;
  }
  SetSeed(0);
}

TEST(Streams, AReportNamesBothOperationsOfARace) {
  SetSeed(3);
  DeviceArray<float> x(std::vector<float>(kCount, 0));
  cudaStream_t a = NewStream(), b = NewStream();
  ASSERT_TRUE(Enqueue(a, x.data(), x.data(), x.data(), 1, 1).ok());
  ASSERT_EQ(cudaMemsetAsync(x.data() + kCount - 1, 0, sizeof(float), b), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
  const std::vector<std::string> reports = TakeReports();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_THAT(reports[0], HasSubstr("Combine"));
  EXPECT_THAT(reports[0], HasSubstr("a memset of 4 bytes"));
  EXPECT_THAT(reports[0], HasSubstr("nothing to order the two"));
  cudaStreamDestroy(a);
  cudaStreamDestroy(b);
  SetSeed(0);
}

// What the host has waited for has happened before all that it enqueues afterwards.
TEST(Streams, TheHostOrdersByWaiting) {
  DeviceArray<float> x(std::vector<float>(kCount, 0));
  cudaStream_t a = NewStream(), b = NewStream();
  cudaEvent_t event = NewEvent();
  const std::function<cudaError_t()> ways[] = {
      [&] { return cudaStreamSynchronize(a); },
      [&] { return cudaDeviceSynchronize(); },
      [&] { return cudaEventSynchronize(event); },
      [&] {
        cudaError_t error;
        while ((error = cudaStreamQuery(a)) == cudaErrorNotReady) continue;
        return error;
      },
      [&] {
        cudaError_t error;
        while ((error = cudaEventQuery(event)) == cudaErrorNotReady) continue;
        return error;
      },
  };
  for (const auto& wait : ways) {
    for (int seed = 0; seed < 20; ++seed) {
      SetSeed(seed);
      ASSERT_TRUE(Enqueue(a, x.data(), x.data(), x.data(), 0, 4).ok());
      ASSERT_EQ(cudaEventRecord(event, a), cudaSuccess);
      ASSERT_EQ(wait(), cudaSuccess);
      ASSERT_TRUE(Enqueue(b, x.data(), x.data(), x.data(), 1, 1).ok());
      ASSERT_EQ(x.Read(), std::vector<float>(kCount, 9));
      ASSERT_THAT(TakeReports(), testing::IsEmpty());
    }
  }
  cudaEventDestroy(event);
  cudaStreamDestroy(a);
  cudaStreamDestroy(b);
}

TEST(Streams, PinnedMemoryIsReadWhenTheCopyRunsPageableAtTheCall) {
  SetSeed(0);
  int* pinned = nullptr;
  ASSERT_EQ(cudaMallocHost(&pinned, sizeof(int)), cudaSuccess);
  DeviceArray<int> from_pinned({0}), from_pageable({0});
  cudaStream_t stream = NewStream();
  std::set<int> seen;
  for (int seed = 0; seed < 40; ++seed) {
    SetSeed(seed);
    int pageable = 1;
    *pinned = 1;
    ASSERT_EQ(cudaMemcpyAsync(from_pinned.data(), pinned, sizeof(int), cudaMemcpyHostToDevice, stream),
              cudaSuccess);
    ASSERT_EQ(cudaMemcpyAsync(from_pageable.data(), &pageable, sizeof(int), cudaMemcpyHostToDevice, stream),
              cudaSuccess);
    *pinned = pageable = 2;
    seen.insert(from_pinned.Read().at(0));
    EXPECT_EQ(from_pageable.Read(), std::vector<int>{1});
  }
  EXPECT_EQ(seen, (std::set<int>{1, 2}));
  cudaStreamDestroy(stream);
  cudaFreeHost(pinned);
}

// A copy to pinned memory must be waited for; one to pageable memory waits itself.
TEST(Streams, CopiesToTheHost) {
  int* pinned = nullptr;
  ASSERT_EQ(cudaMallocHost(&pinned, sizeof(int)), cudaSuccess);
  cudaStream_t stream = NewStream();
  std::set<int> seen;
  for (int seed = 0; seed < 40; ++seed) {
    SetSeed(seed);
    DeviceArray<int> x({7});
    int pageable = 0;
    *pinned = 0;
    ASSERT_EQ(cudaMemcpyAsync(pinned, x.data(), sizeof(int), cudaMemcpyDeviceToHost, stream), cudaSuccess);
    seen.insert(*pinned);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(*pinned, 7);
    ASSERT_EQ(cudaMemcpyAsync(&pageable, x.data(), sizeof(int), cudaMemcpyDeviceToHost, stream), cudaSuccess);
    EXPECT_EQ(pageable, 7);
  }
  EXPECT_EQ(seen, (std::set<int>{0, 7}));
  cudaStreamDestroy(stream);
  cudaFreeHost(pinned);
}

// cudaMemcpy of pageable memory comes back before the bytes are there; streams that do not block do not wait for them.
TEST(Streams, CopiesOfPageableMemoryAreUnderWay) {
  cudaStream_t stream = NewStream();
  for (const bool waits : {true, false}) {
    for (int seed = 0; seed < 20; ++seed) {
      SetSeed(seed);
      DeviceArray<int> x({0}), y({0});
      const int value = 3;
      ASSERT_EQ(cudaMemcpy(x.data(), &value, sizeof value, cudaMemcpyHostToDevice), cudaSuccess);
      ASSERT_EQ(waits ? cudaStreamSynchronize(nullptr) : cudaSuccess, cudaSuccess);
      ASSERT_EQ(cudaMemcpyAsync(y.data(), x.data(), sizeof value, cudaMemcpyDeviceToDevice, stream), cudaSuccess);
      if (waits) {
        EXPECT_EQ(y.Read(), std::vector<int>{3});
        EXPECT_THAT(TakeReports(), testing::IsEmpty());
      } else {
        EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
        EXPECT_THAT(TakeReports(), testing::Contains(HasSubstr("race")));
        SetSeed(seed);
      }
    }
  }
  cudaStreamDestroy(stream);
}

// The legacy stream and blocking streams wait for each other; streams that are not blocking do not.
TEST(Streams, TheLegacyStream) {
  cudaStream_t blocking = nullptr;
  ASSERT_EQ(cudaStreamCreate(&blocking), cudaSuccess);
  cudaStream_t free_stream = NewStream();
  std::set<std::string> with_blocking, with_free;
  for (int seed = 0; seed < 100; ++seed) {
    SetSeed(seed);
    for (const bool wait : {true, false}) {
      std::string order;
      std::pair<std::string*, char> letters[] = {{&order, 'a'}, {&order, 'b'}, {&order, 'c'}};
      cudaStream_t other = wait ? blocking : free_stream;
      ASSERT_EQ(cudaLaunchHostFunc(other, Append, &letters[0]), cudaSuccess);
      ASSERT_EQ(cudaLaunchHostFunc(nullptr, Append, &letters[1]), cudaSuccess);
      ASSERT_EQ(cudaLaunchHostFunc(other, Append, &letters[2]), cudaSuccess);
      ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
      (wait ? with_blocking : with_free).insert(order);
    }
  }
  EXPECT_EQ(with_blocking, std::set<std::string>{"abc"});
  EXPECT_EQ(with_free, (std::set<std::string>{"abc", "bac", "acb"}));
  cudaStreamDestroy(blocking);
  cudaStreamDestroy(free_stream);
}

// A mutant of a program that makes one stream wait for another is found, whatever the order in which they ran; a
// wait for what is in order anyway is no place for one.
TEST(Streams, AnIgnoredWaitIsARace) {
  cudaStream_t first = NewStream(), second = NewStream();
  cudaEvent_t event;
  ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
  DeviceArray<float> x(std::vector<float>(kCount, 1));
  std::vector<uint64_t> sites;
  for (int seed = 0; seed < 40; ++seed) {
    SetSeed(seed);
    if (seed % 2 == 1) IgnoreWaitsAt(sites[0]);
    ASSERT_TRUE(Enqueue(first, x.data(), x.data(), x.data(), 1, 1).ok());
    ASSERT_EQ(cudaEventRecord(event, first), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(first, event, 0), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(second, event, 0), cudaSuccess);
    if (seed % 2 == 0) {
      ASSERT_EQ(cudaStreamWaitEvent(second, event, 0), cudaSuccess);
    }
    sites = WaitSites();
    ASSERT_EQ(sites.size(), 1u);
    ASSERT_TRUE(Enqueue(second, x.data(), x.data(), x.data(), 1, 1).ok());
    cudaStreamSynchronize(second);
    cudaStreamSynchronize(first);
    EXPECT_THAT(TakeReports(), testing::SizeIs(seed % 2));
  }
  SetSeed(0);
  ASSERT_EQ(cudaEventDestroy(event), cudaSuccess);
  cudaStreamDestroy(first);
  cudaStreamDestroy(second);
}

// Host threads share the devices: each has its own stream, and waits for the one before it.
TEST(Streams, ManyHostThreads) {
  SetSeed(5);
  constexpr int kThreads = 4, kRounds = 20;
  DeviceArray<float> x(std::vector<float>(kThreads * kCount, 0));
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      cudaStream_t stream = NewStream();
      float* own = x.data() + t * kCount;
      for (int round = 0; round < kRounds; ++round) {
        EXPECT_TRUE(Enqueue(stream, own, own, own, 0.5f, static_cast<float>(t)).ok());
        if (round % 3 == t % 3) {
          EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
        }
      }
      EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
      EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::vector<float> result = x.Read();
  ASSERT_EQ(result.size(), static_cast<size_t>(kThreads * kCount));
  for (int i = 0; i < kThreads * kCount; ++i) EXPECT_EQ(result[i], kRounds * (i / kCount));
  EXPECT_THAT(TakeReports(), testing::IsEmpty());
}

}  // namespace
}  // namespace cuda_emulation
