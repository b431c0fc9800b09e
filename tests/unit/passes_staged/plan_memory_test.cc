#include <gmock/gmock.h>

#include <numeric>
#include <set>

#include "runtime/base/least_memory.h"
#include "small_models.h"

namespace pipec {
namespace {

std::unique_ptr<Module> Planned(std::unique_ptr<Module> module, const PassContext& context) {
  const absl::Status status = Compile(*module, context, Level::kPlanned);
  EXPECT_EQ(status, absl::OkStatus());
  return module;
}

PassContext CutChain(int microbatches, const std::string& schedule = "1f1b") {
  PassContext context = Context(4, microbatches, schedule);
  context.options.cut = {"y0", "y1", "y2"};
  return context;
}

int MostSlots(const RankMemory& memory, BufferKind kind) {
  int slots = 0;
  for (const Buffer& buffer : memory.buffers) {
    if (buffer.kind == kind) slots = std::max(slots, buffer.slots());
  }
  return slots;
}

// 1f1b keeps at most P - s microbatches at stage s, however many there are; gpipe keeps them all.
TEST(PlanMemory, ActivationsAndReceiveBuffersAreBounded) {
  auto few = Planned(Chain(4), CutChain(8));
  auto many = Planned(Chain(4), CutChain(64));
  auto gpipe = Planned(Chain(4), CutChain(64, "gpipe"));
  for (int s = 0; s < 4; ++s) {
    EXPECT_EQ(many->memory[s].lower_bound, few->memory[s].lower_bound);
    EXPECT_LE(many->memory[s].arena_bytes, 1.05 * few->memory[s].lower_bound);
    EXPECT_GE(MostSlots(gpipe->memory[s], BufferKind::kActivation), 64);
    EXPECT_GT(gpipe->memory[s].arena_bytes, few->memory[s].arena_bytes + 56 * 128);
  }
}

// What makes the next microbatch's tensor does not wait for a message that is on its way in modelled time.
TEST(PlanMemory, WhatIsSentStaysUntilItHasArrived) {
  for (const std::string schedule : {"gpipe", "1f1b", "zb-h1"}) {
    for (const double latency : {0.0, 1e-5, 1e-3}) {
      PassContext context = CutChain(8, schedule);
      for (DeviceProfile& device : context.options.cluster.devices) device.link.latency_seconds = latency;
      auto module = Planned(Chain(4), context);
      int compared = 0, most_slots = 1;
      for (const Message& message : module->messages) {
        const int rank = module->stages[message.from_stage].rank;
        if (message.kind == MessageKind::kNorm || module->stages[message.to_stage].rank == rank) continue;
        const RankMemory& memory = module->memory[rank];
        const Buffer& buffer = memory.buffers[memory.locations.at(message.node->input(0)).buffer];
        if (buffer.slot_class < 0) continue;
        const std::vector<int>& slot = memory.slot_classes[buffer.slot_class].train;
        std::vector<double> begins(8), arrives(8);
        for (const SimulatedAction& slice : module->simulation.ranks[rank]) {
          const Action& a = slice.action;
          const bool forward = message.kind == MessageKind::kActivation;
          if (a.stage != message.from_stage) continue;
          if (a.kind == (forward ? ActionKind::kSendF : ActionKind::kSendB))
            arrives[a.microbatch] = slice.end;
          if (forward ? a.kind == ActionKind::kF : a.kind == ActionKind::kB || a.kind == ActionKind::kI)
            begins[a.microbatch] = slice.start;
        }
        for (int m = 0; m < 8; ++m) {
          for (int later = m + 1; later < 8; ++later) {
            if (slot[m] == slot[later]) {
              EXPECT_LE(arrives[m], begins[later]) << schedule << latency << buffer.name;
            }
            ++compared;
          }
        }
        most_slots = std::max(most_slots, buffer.slots());
      }
      EXPECT_GT(compared, 0);
      EXPECT_GE(most_slots, latency == 1e-3 ? 3 : 1);
    }
  }
}

TEST(PlanMemory, EvaluationKeepsNothingBetweenStages) {
  auto few = Planned(Chain(4, Mode::kInfer), CutChain(4, "infer"));
  auto many = Planned(Chain(4, Mode::kInfer), CutChain(64, "infer"));
  for (int s = 0; s < 4; ++s) {
    EXPECT_EQ(MostSlots(many->memory[s], BufferKind::kActivation), 0);
    EXPECT_EQ(many->memory[s].arena_bytes, few->memory[s].arena_bytes);
  }
}

TEST(PlanMemory, WhatLiesInOnePlaceLiesInOnePlace) {
  auto module = Planned(Tied(), CutChain(4));
  for (const TrainedParameter& trained : module->training.parameters) {
    for (int k = 0; k < trained.updates.size(); ++k) {
      const auto& places = module->memory[module->stages[trained.updates[k]->stage].rank].locations;
      EXPECT_EQ(places.at(trained.updates[k]->output(0)).buffer, places.at(trained.parameter).buffer);
      EXPECT_EQ(places.at(trained.updates[k]->output(1)).buffer, places.at(trained.states[k][0]).buffer);
      EXPECT_EQ(places.at(trained.updates[k]->output(2)).buffer, places.at(trained.states[k][1]).buffer);
    }
    for (const Value* accumulated : trained.accumulated) {
      const Node* node = accumulated->producer();
      const auto& places = module->memory[module->stages[node->stage].rank].locations;
      EXPECT_EQ(places.at(accumulated).buffer, places.at(node->input(0)).buffer);
    }
  }
}

// Two stages on one rank: what passes between them is neither sent nor copied.
TEST(PlanMemory, MessagesWithinARankShareABuffer) {
  auto module = Planned(Chain(4), Context(1, 4, "interleaved"));
  ASSERT_EQ(module->stages.size(), 2);
  ASSERT_FALSE(module->messages.empty());
  for (const Message& message : module->messages) {
    for (int k = 0; k < message.node->inputs().size(); ++k) {
      const auto& places = module->memory[0].locations;
      EXPECT_EQ(places.at(message.node->input(k)).buffer, places.at(message.node->output(k)).buffer);
    }
  }
  for (const Action& action : module->schedule.ranks[0]) EXPECT_FALSE(IsMessage(action.kind));
}

std::set<std::string> Names(const RankMemory& memory, BufferKind kind) {
  std::set<std::string> names;
  for (const Buffer& buffer : memory.buffers) {
    if (buffer.kind == kind) names.insert(buffer.name);
  }
  return names;
}

// Where some microbatches run B and others I and W, what these use up is no more kept than where all run I and W.
TEST(PlanMemory, BIsIAndThenWInAStageThatRunsBoth) {
  PassContext context = Context(1, 8, "dualpipe-v");
  context.options.cut = {"y1"};
  auto both = Planned(Chain(4), context);
  std::set<ActionKind> kinds;
  for (const Action& action : both->schedule.ranks[0]) kinds.insert(action.kind);
  ASSERT_TRUE(kinds.contains(ActionKind::kB) && kinds.contains(ActionKind::kI));
  context.options.schedule = "zb-v";
  auto split = Planned(Chain(4), context);
  const auto used_up = Names(both->memory[0], BufferKind::kTransient);
  EXPECT_THAT(used_up, ::testing::IsSupersetOf(Names(split->memory[0], BufferKind::kTransient)));
  EXPECT_TRUE(used_up.contains("h0.grad"));
}

// No more than is live at once: what a stage has emptied another one fills, be it with what it keeps or what it
// works with.
TEST(PlanMemory, StagesOfARankShareTheirMemory) {
  for (const char* schedule : {"interleaved", "zb-v", "v-half", "dualpipe-v"}) {
    PassContext context = Context(1, 8, schedule);
    context.options.cut = {"y3"};
    auto module = Planned(Chain(8), context);
    const RankMemory& memory = module->memory[0];
    EXPECT_GE(memory.arena_bytes, memory.lower_bound) << schedule;
    EXPECT_LE(memory.arena_bytes, 1.01 * memory.lower_bound) << schedule;
    EXPECT_EQ(std::accumulate(memory.peaks.begin(), memory.peaks.end(), int64_t{0}), memory.arena_bytes)
        << schedule;
    EXPECT_GE(memory.peaks[static_cast<int>(BufferKind::kTransient)], 0) << schedule;
  }
}

TEST(PlanMemory, TooLittleMemoryNamesTheRankAndWhatItNeeds) {
  auto module = Planned(Chain(4), CutChain(8));
  const int64_t needed = module->memory[0].arena_bytes;
  PassContext context = CutChain(8);
  SetMemory(needed - 1, context);
  const absl::StatusOr<bool> status = PlanMemory(*module, context);
  EXPECT_EQ(status.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.status().message()),
              ::testing::HasSubstr(absl::StrCat("needs ", needed, " bytes")));
  EXPECT_EQ(LeastMemory(status.status()), needed);
  SetMemory(needed, context);
  EXPECT_TRUE(PlanMemory(*module, context).ok());
}

// A draft is coarser, and says the same of every limit.
TEST(PlanMemory, DraftsFitWhatTheBestLayoutFits) {
  int coarser = 0;
  for (const char* schedule : {"1f1b", "zb-h1", "gpipe", "interleaved"}) {
    PassContext context = Context(4, 64, schedule);
    auto module = Planned(Chain(16), context);
    const std::vector<RankMemory> best = module->memory;
    context.options.draft_memory = true;
    ASSERT_TRUE(PlanMemory(*module, context).ok());
    ASSERT_TRUE(VerifyPlanned(*module).ok()) << VerifyPlanned(*module);
    for (size_t r = 0; r < best.size(); ++r) {
      EXPECT_GE(module->memory[r].arena_bytes, best[r].arena_bytes) << schedule;
      EXPECT_EQ(module->memory[r].lower_bound, best[r].lower_bound) << schedule;
      coarser += module->memory[r].arena_bytes > best[r].arena_bytes;
      context.options.cluster.devices[r].memory_bytes = best[r].arena_bytes;
    }
    EXPECT_TRUE(PlanMemory(*module, context).ok()) << schedule;
    for (size_t r = 0; r < best.size(); ++r) {
      context.options.cluster.devices[r].memory_bytes -= 64;
      EXPECT_FALSE(PlanMemory(*module, context).ok()) << schedule << " " << r;
      context.options.cluster.devices[r].memory_bytes += 64;
    }
  }
  EXPECT_GT(coarser, 0);
}

// Puts buffer `moved` where `other` lies.
bool Caught(Module& module, int rank, int moved, int other) {
  RankMemory& memory = module.memory[rank];
  const Buffer good = memory.buffers[moved], &target = memory.buffers[other];
  if (target.slot_class >= 0) {
    memory.buffers[moved].slot_class = target.slot_class;
    memory.buffers[moved].offsets = target.offsets;
  } else {
    memory.buffers[moved].offsets.assign(good.slots(), target.offsets[0]);
  }
  const int64_t arena = std::exchange(memory.arena_bytes, memory.arena_bytes * 2 + (1 << 20));
  const bool caught = !VerifyPlanned(module).ok();
  memory.buffers[moved] = good;
  memory.arena_bytes = arena;
  return caught;
}

// A buffer on top of one that keeps its contents is caught always; so is any overlap of what several actions
// share.
TEST(VerifyPlanned, CatchesOverlaps) {
  auto module = Planned(Skips(), CutChain(4));
  int tried = 0;
  for (int r = 0; r < 4; ++r) {
    const std::vector<Buffer> buffers = module->memory[r].buffers;
    for (int i = 0; i < buffers.size(); ++i) {
      for (int j = 0; j < buffers.size(); ++j) {
        const bool shared = buffers[i].slot_class >= 0 && buffers[j].slot_class >= 0;
        const bool kept =
            buffers[j].kind == BufferKind::kParameter || buffers[j].kind == BufferKind::kOptimizerState;
        if (i == j || !(shared || kept) || buffers[i].bytes == 0) continue;
        // Buffers of a class within one action may be dead before the other is written.
        if (shared && buffers[i].kind != BufferKind::kActivation) continue;
        if (shared && buffers[j].kind != BufferKind::kActivation) continue;
        EXPECT_TRUE(Caught(*module, r, i, j)) << r << ": " << buffers[i].name << " on " << buffers[j].name;
        ++tried;
      }
    }
  }
  EXPECT_GT(tried, 20);
}

TEST(VerifyPlanned, CatchesWrongSlotsAndPlaces) {
  auto module = Planned(Chain(4), CutChain(8));
  RankMemory& memory = module->memory[0];
  const RankMemory good = memory;
  ASSERT_GT(MostSlots(memory, BufferKind::kActivation), 1);
  for (int c = 0; c < good.slot_classes.size(); ++c) {
    if (good.slot_classes[c].slots < 2) continue;
    memory.slot_classes[c].train[0] = good.slot_classes[c].slots;
    EXPECT_FALSE(VerifyPlanned(*module).ok()) << c;
    memory = good;
  }
  for (int b = 0; b < good.buffers.size(); ++b) {
    memory.buffers[b].offsets.back() += 1;
    EXPECT_FALSE(VerifyPlanned(*module).ok());
    memory.buffers[b].offsets.back() = good.arena_bytes;
    EXPECT_FALSE(VerifyPlanned(*module).ok());
    memory = good;
  }
  memory.programs.pop_back();
  EXPECT_FALSE(VerifyPlanned(*module).ok());
  memory = good;
  memory.locations.erase(module->graph.FindValue("h0"));
  EXPECT_FALSE(VerifyPlanned(*module).ok());
  memory = good;
  EXPECT_TRUE(VerifyPlanned(*module).ok());
}

}  // namespace
}  // namespace pipec
