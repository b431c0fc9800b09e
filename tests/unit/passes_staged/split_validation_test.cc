// Updates ahead of the norms: which schedules have them, what they need of memory, and what the verifiers say if
// they have not.
#include <gmock/gmock.h>

#include "compiler/ir/validate_at.h"
#include "small_models.h"

namespace pipec {
namespace {

using ::testing::Each;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

PassContext CutChain(const std::string& schedule, int ranks = 4) {
  PassContext context = Context(ranks, 8, schedule);
  if (ranks == 4) context.options.cut = {"y0", "y1", "y2"};
  return context;
}

std::unique_ptr<Module> Scheduled(std::unique_ptr<Module> module, const PassContext& context) {
  EXPECT_EQ(Compile(*module, context, Level::kScheduled), absl::OkStatus());
  EXPECT_TRUE(SplitValidation(*module, context).ok());
  EXPECT_EQ(Verify(*module), absl::OkStatus());
  return module;
}

std::unique_ptr<Module> Planned(std::unique_ptr<Module> module, const PassContext& context) {
  module = Scheduled(std::move(module), context);
  EXPECT_TRUE(PlanMemory(*module, context).ok());
  module->level = Level::kPlanned;
  EXPECT_EQ(Verify(*module), absl::OkStatus());
  return module;
}

int64_t Largest(const Module& module) {
  int64_t bytes = 0;
  for (const RankMemory& memory : module.memory) bytes = std::max(bytes, memory.arena_bytes);
  return bytes;
}

TEST(SplitValidation, OfSchedulesThatSplitTheBackwardPass) {
  for (const char* schedule : {"zb-h1", "zb-h2"}) {
    const std::vector<int> places = ValidateAt(*Scheduled(Chain(4), CutChain(schedule)));
    EXPECT_THAT(places, SizeIs(4)) << schedule;
    EXPECT_THAT(places, Each(Ge(0)));
  }
  for (const char* schedule : {"gpipe", "1f1b", "eager-1f1b", "interleaved"})
    EXPECT_THAT(ValidateAt(*Scheduled(Chain(8), CutChain(schedule, 2))), IsEmpty()) << schedule;
  EXPECT_THAT(ValidateAt(*Scheduled(Chain(4), CutChain("zb-h2", 1))), IsEmpty());
}

TEST(SplitValidation, TheModelledTimeIsFromStepToStep) {
  PassContext context = CutChain("zb-h2");
  auto waits = Chain(4);
  ASSERT_EQ(Compile(*waits, context, Level::kScheduled), absl::OkStatus());
  const auto ahead = Scheduled(Chain(4), context);
  EXPECT_LT(ahead->simulation.step_seconds, waits->simulation.step_seconds);
  // No rank can do its work in less.
  for (int r = 0; r < 4; ++r) {
    double work = 0;
    for (const SimulatedAction& slice : ahead->simulation.ranks[r]) {
      if (!IsMessage(slice.action.kind)) work += slice.end - slice.start;
    }
    EXPECT_GE(ahead->simulation.step_seconds, work * (1 - 1e-9));
  }
}

TEST(SplitValidation, WaitsAgainWhereMemoryIsShort) {
  PassContext context = CutChain("zb-h2");
  const int64_t ahead = Largest(*Planned(Chain(4), context));
  auto waits = Chain(4);
  ASSERT_EQ(Compile(*waits, context, Level::kPlanned), absl::OkStatus());
  ASSERT_GT(ahead, Largest(*waits));
  SetMemory(ahead - 1, context);
  const auto module = Planned(Chain(4), context);
  EXPECT_THAT(ValidateAt(*module), IsEmpty());
  EXPECT_EQ(Largest(*module), Largest(*waits));
  EXPECT_EQ(module->simulation.step_seconds, waits->simulation.step_seconds);
}

TEST(VerifyLate, APlaceThatIsTooLate) {
  for (int rank = 0; rank < 4; ++rank) {
    const auto module = Planned(Chain(4), CutChain("zb-h2"));
    std::vector<int> places = ValidateAt(*module);
    ++places[rank];
    SetValidateAt(*module, places);
    EXPECT_FALSE(Verify(*module).ok()) << rank;
  }
}

TEST(VerifyLate, AnUpdateInPlace) {
  for (const bool state : {false, true}) {
    const auto module = Planned(Tied(), CutChain("zb-h2"));
    for (RankMemory& memory : module->memory) {
      for (Buffer& buffer : memory.buffers) {
        if (buffer.kind != (state ? BufferKind::kOptimizerState : BufferKind::kParameter)) continue;
        ASSERT_EQ(buffer.slots(), 2) << buffer.name;
        buffer.offsets.pop_back();
        buffer.slot_class = -1;
      }
    }
    EXPECT_THAT(std::string(Verify(*module).message()), HasSubstr("writes over"));
  }
}

// Scales, norms and summed gradients each put where the next step's samples come.
TEST(VerifyLate, WhatAnUpdateReadsIsOverwritten) {
  int tried = 0;
  for (const bool tied : {false, true}) {
    const auto module = Planned(tied ? Tied() : Chain(4), CutChain("zb-h2"));
    RankMemory& memory = module->memory[0];
    const Buffer* work = nullptr;
    for (const Buffer& buffer : memory.buffers) {
      if (buffer.kind == BufferKind::kInput) work = &buffer;
    }
    ASSERT_NE(work, nullptr);
    const auto spoil = [&](const Value* value) {
      const auto place = memory.locations.find(value);
      if (place == memory.locations.end()) return;
      Buffer& buffer = memory.buffers[place->second.buffer];
      const int64_t offset = buffer.offsets[0];
      buffer.offsets[0] = work->offsets[0];
      EXPECT_FALSE(Verify(*module).ok()) << buffer.name;
      buffer.offsets[0] = offset;
      ++tried;
    };
    for (const Node* scale : module->training.gradient_scales) {
      if (module->stages[scale->stage].rank != 0) continue;
      for (const Value* value : scale->inputs()) {
        if (value) spoil(value);
      }
      for (const Value* value : scale->outputs()) spoil(value);
    }
    for (const TrainedParameter& trained : module->training.parameters) {
      for (const Node* update : trained.updates) {
        if (module->stages[update->stage].rank == 0) spoil(update->input(1));
      }
    }
    EXPECT_EQ(Verify(*module), absl::OkStatus());
  }
  EXPECT_GT(tried, 10);
}

}  // namespace
}  // namespace pipec
