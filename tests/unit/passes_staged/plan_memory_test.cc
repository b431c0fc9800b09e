#include <gmock/gmock.h>

#include <map>
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
    if (buffer.kind == kind) slots = std::max(slots, buffer.slots);
  }
  return slots;
}

// 1f1b keeps at most P - s microbatches at stage s, however many there are; gpipe keeps them all.
TEST(PlanMemory, ActivationsAndReceiveBuffersAreBounded) {
  auto few = Planned(Chain(4), CutChain(8));
  auto many = Planned(Chain(4), CutChain(64));
  auto gpipe = Planned(Chain(4), CutChain(64, "gpipe"));
  for (int s = 0; s < 4; ++s) {
    EXPECT_LE(MostSlots(many->memory[s], BufferKind::kActivation), 4 - s);
    EXPECT_GE(MostSlots(many->memory[s], BufferKind::kActivation), 1);
    EXPECT_LE(MostSlots(many->memory[s], BufferKind::kMessage), 4 - s + 1);
    EXPECT_EQ(many->memory[s].arena_bytes, few->memory[s].arena_bytes);
    EXPECT_EQ(MostSlots(gpipe->memory[s], BufferKind::kActivation), 64);
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
        most_slots = std::max(most_slots, buffer.slots);
      }
      EXPECT_GT(compared, 0);
      EXPECT_GE(most_slots, latency == 1e-3 ? 3 : 1);
    }
  }
}

TEST(PlanMemory, EvaluationKeepsNothingBetweenStages) {
  auto module = Planned(Chain(4, Mode::kInfer), [] {
    PassContext context = CutChain(64, "infer");
    return context;
  }());
  for (int s = 0; s < 4; ++s) {
    EXPECT_EQ(MostSlots(module->memory[s], BufferKind::kActivation), 0);
    EXPECT_LE(MostSlots(module->memory[s], BufferKind::kMessage), 2);
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

int64_t SlotBytes(const RankMemory& memory) {
  std::map<int64_t, int64_t> bytes;  // by offset
  for (const Buffer& buffer : memory.buffers) {
    if (buffer.slot_class >= 0) bytes[buffer.offset] = buffer.slots * buffer.stride();
  }
  int64_t sum = 0;
  for (const auto& [offset, size] : bytes) sum += size;
  return sum;
}

// The most bytes of what has slots that are live at once, counted action by action.
int64_t LiveBytes(const Module& module, int rank) {
  const RankMemory& memory = module.memory[rank];
  const std::vector<Action>& actions = module.schedule.ranks[rank];
  std::map<std::pair<int, int>, std::pair<int, int>> lives;  // of buffer and microbatch: positions
  std::map<std::pair<ActionKind, int>, std::set<int>> touched;
  for (const Program& program : memory.programs) {
    for (const Node* node : program.nodes) {
      for (const auto& values : {node->inputs(), node->outputs()}) {
        for (const Value* value : values) {
          if (value) touched[{program.kind, program.stage}].insert(memory.locations.at(value).buffer);
        }
      }
    }
  }
  for (int p = 0; p < static_cast<int>(actions.size()); ++p) {
    if (actions[p].microbatch < 0) continue;
    for (const int b : touched[{actions[p].kind, actions[p].stage}]) {
      if (memory.buffers[b].slot_class < 0) continue;
      lives.try_emplace({b, actions[p].microbatch}, p, p).first->second.second = p;
    }
  }
  std::vector<int64_t> live(actions.size(), 0);
  for (const auto& [key, life] : lives) {
    for (int p = life.first; p <= life.second; ++p) live[p] += memory.buffers[key.first].stride();
  }
  return *std::max_element(live.begin(), live.end());
}

// Two stages on a rank that are full at different times take turns: no more slots than are in use at once.
TEST(PlanMemory, StagesOfARankShareTheirSlots) {
  for (const char* schedule : {"interleaved", "zb-v", "v-half", "dualpipe-v"}) {
    PassContext context = Context(1, 8, schedule);
    context.options.cut = {"y3"};
    auto module = Planned(Chain(8), context);
    EXPECT_GE(SlotBytes(module->memory[0]), LiveBytes(*module, 0)) << schedule;
    EXPECT_LE(SlotBytes(module->memory[0]), 1.1 * LiveBytes(*module, 0)) << schedule;
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

// Puts buffer `moved` where `other` lies.
bool Caught(Module& module, int rank, int moved, int other) {
  RankMemory& memory = module.memory[rank];
  const int64_t offset = std::exchange(memory.buffers[moved].offset, memory.buffers[other].offset);
  const int64_t arena = std::exchange(memory.arena_bytes, memory.arena_bytes * 2 + (1 << 20));
  const bool caught = !VerifyPlanned(module).ok();
  memory.buffers[moved].offset = offset;
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
    memory.slot_classes[c].train[1] = memory.slot_classes[c].train[0];
    EXPECT_FALSE(VerifyPlanned(*module).ok()) << c;
    memory = good;
    memory.slot_classes[c].train[0] = good.slot_classes[c].slots;
    EXPECT_FALSE(VerifyPlanned(*module).ok()) << c;
    memory = good;
  }
  for (int b = 0; b < good.buffers.size(); ++b) {
    memory.buffers[b].offset += 1;
    EXPECT_FALSE(VerifyPlanned(*module).ok());
    memory.buffers[b].offset = good.arena_bytes;
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
