#include <atomic>
#include <thread>

#include "kernel_call.h"
#include "runtime/device/cpu/parallel_for.h"
#include "runtime/device/null/null_device.h"

namespace pipec {
namespace {

std::vector<std::unique_ptr<Device>> HostDevices() {
  std::vector<std::unique_ptr<Device>> devices;
  devices.push_back(MakeCpuDevice(2));
  devices.push_back(MakeNullDevice());
  return devices;
}

TEST(HostDevices, GiveZeroedAlignedMemory) {
  for (const auto& device : HostDevices()) {
    for (int64_t bytes : {int64_t{0}, int64_t{1}, int64_t{100}, int64_t{5} << 20}) {
      absl::StatusOr<std::byte*> memory = device->Allocate(bytes);
      ASSERT_TRUE(memory.ok()) << memory.status();
      EXPECT_EQ(reinterpret_cast<uintptr_t>(*memory) % 64, 0);
      for (int64_t i = 0; i < bytes; i += 97) ASSERT_EQ((*memory)[i], std::byte{0});
      if (bytes > 0) (*memory)[bytes - 1] = std::byte{1};
    }
    EXPECT_EQ(device->Allocate(-1).status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(device->Allocate(int64_t{1} << 60).status().code(), absl::StatusCode::kResourceExhausted);
  }
}

TEST(HostDevices, StreamsWaitForEventsOfOtherThreads) {
  for (const auto& device : HostDevices()) {
    std::unique_ptr<Stream> stream = *device->NewStream();
    std::unique_ptr<Event> event = *device->NewEvent();
    EXPECT_EQ(stream->Wait(*event, absl::Now()).code(), absl::StatusCode::kDeadlineExceeded);
    std::thread other([&] { ASSERT_TRUE(stream->Record(*event).ok()); });
    EXPECT_TRUE(stream->Wait(*event, absl::InfiniteFuture()).ok());
    other.join();
    event->Expect();
    EXPECT_FALSE(stream->Wait(*event, absl::Now()).ok());
    int from = 7, to = 0;
    EXPECT_TRUE(device->Copy(*stream, &to, &from, sizeof(int)).ok());
    EXPECT_TRUE(stream->Synchronize(absl::InfiniteFuture()).ok());
    EXPECT_EQ(to, 7);
  }
}

TEST(CpuDevice, NamesAnOpWithoutKernel) {
  EXPECT_THAT(KernelCall("Frobnicate", "my.domain").Error(),
              testing::AllOf(testing::HasSubstr("Frobnicate"), testing::HasSubstr("my.domain")));
}

TEST(NullDevice, RunsAnything) {
  std::unique_ptr<Device> device = MakeNullDevice();
  std::unique_ptr<Stream> stream = *device->NewStream();
  KernelSpec spec;
  spec.op = "Anything";
  std::unique_ptr<Kernel> kernel = *device->Prepare(spec);
  EXPECT_TRUE(kernel->Launch(*stream, {}).ok());
}

TEST(ParallelFor, CoversTheRangeOnceInWholeGrains) {
  for (int threads : {1, 2, 3, 7}) {
    std::unique_ptr<Stream> stream = *MakeCpuDevice(threads)->NewStream();  // sets the number of threads
    for (int64_t n : {0, 1, 9, 10, 11, 100, 101, 1000}) {
      for (int64_t grain : {1, 10, 64}) {
        std::vector<std::atomic<int>> seen(n);
        std::atomic<int> ranges = 0;
        cpu::ParallelFor(n, grain, [&](int64_t begin, int64_t end) {
          EXPECT_EQ(begin % grain, 0);
          EXPECT_TRUE(end == n || end % grain == 0);
          ++ranges;
          for (int64_t i = begin; i < end; ++i) ++seen[i];
        });
        for (const std::atomic<int>& count : seen) ASSERT_EQ(count, 1);
        EXPECT_EQ(ranges, std::min<int64_t>(threads, (n + grain - 1) / grain));
      }
    }
  }
}

TEST(ParallelFor, EveryRankHasItsOwnThreads) {
  const auto rank = [](int threads, int64_t* sum) {
    std::unique_ptr<Stream> stream = *MakeCpuDevice(threads)->NewStream();
    for (int round = 0; round < 100; ++round) {
      std::vector<int64_t> values(1000);
      cpu::ParallelFor(1000, 10, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) values[i] = i;
      });
      for (int64_t value : values) *sum += value;
    }
  };
  int64_t a = 0, b = 0;
  std::thread first(rank, 2, &a), second(rank, 3, &b);
  first.join();
  second.join();
  EXPECT_EQ(a, 100 * 499500);
  EXPECT_EQ(b, 100 * 499500);
}

}  // namespace
}  // namespace pipec
