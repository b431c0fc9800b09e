// Random faults in where and when buffers lie: what verifies a planned module says of each what a second opinion says.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "lifetimes.h"
#include "passes/check_in_place.h"
#include "small_models.h"

namespace pipec {
namespace {

bool Sound(const Module& module, int rank) {
  const bool trains = module.mode == Mode::kTrain;
  return (!trains || Lifetimes(module, rank, true).Sound()) && Lifetimes(module, rank, false).Sound();
}

bool Verified(const Module& module, int rank) {
  return CheckInPlace(module.memory[rank]).ok() && VerifyPlanned(module).ok();
}

// One fault, or what looks like one, within what CheckBuffers allows.
std::string Mutate(RankMemory& memory, std::mt19937& random) {
  const auto any = [&](size_t n) { return static_cast<int>(random() % n); };
  Buffer& buffer = memory.buffers[any(memory.buffers.size())];
  int64_t& offset = buffer.offsets[any(buffer.offsets.size())];
  const int64_t last = memory.arena_bytes - buffer.aligned_bytes();
  switch (any(4)) {
    case 0:  // anywhere
      offset = 64 * any(last / 64 + 1);
      return "moved " + buffer.name;
    case 1: {  // on top of another
      const Buffer& other = memory.buffers[any(memory.buffers.size())];
      offset = std::min(other.offsets[any(other.offsets.size())], last);
      return "put " + buffer.name + " on " + other.name;
    }
    case 2: {  // a slot too early
      if (memory.slot_classes.empty()) return "nothing";
      SlotClass& slots = memory.slot_classes[any(memory.slot_classes.size())];
      std::vector<int>& entries = random() % 4 && !slots.train.empty() ? slots.train : slots.eval;
      entries[any(entries.size())] = any(slots.slots);
      return "changed a slot";
    }
    default: {  // a result where something else lies
      std::vector<const Value*> results;
      for (const auto& [value, location] : memory.locations) {
        if (value->kind() == ValueKind::kResult) results.push_back(value);
      }
      std::sort(results.begin(), results.end(), [](auto* a, auto* b) { return a->name() < b->name(); });
      const Value* result = results[any(results.size())];
      const int place = any(memory.buffers.size());
      if (result->type.bytes() > memory.buffers[place].bytes) return "nothing";
      memory.locations[result] = {place, 0};
      return "placed " + result->name() + " in " + memory.buffers[place].name;
    }
  }
}

TEST(MemoryMutants, TheVerifierSaysWhatLifetimesSay) {
  std::mt19937 random(1);
  int wrong = 0, right = 0;
  for (const char* schedule : {"gpipe", "1f1b", "interleaved", "zb-h1", "zb-v", "infer"}) {
    for (const int model : {0, 1, 2}) {
      const bool infers = schedule == std::string("infer");
      if (infers && model > 0) continue;
      const std::unique_ptr<Module> module = infers       ? Chain(8, Mode::kInfer)
                                             : model == 0 ? Chain(8)
                                             : model == 1 ? Skips()
                                                          : Tied();
      ASSERT_EQ(Compile(*module, Context(2, 6, schedule), Level::kPlanned), absl::OkStatus())
          << schedule << model;
      for (int rank = 0; rank < 2; ++rank) {
        ASSERT_TRUE(Sound(*module, rank)) << schedule << model;
        const RankMemory good = module->memory[rank];
        for (int round = 0; round < 100; ++round) {
          const std::string what = Mutate(module->memory[rank], random);
          const bool sound = Sound(*module, rank);
          EXPECT_EQ(Verified(*module, rank), sound)
              << schedule << ", model " << model << ", rank " << rank << ": " << what;
          ++(sound ? right : wrong);
          module->memory[rank] = good;
        }
      }
    }
  }
  EXPECT_GT(wrong, 1000);
  EXPECT_GT(right, 300);
}

}  // namespace
}  // namespace pipec
