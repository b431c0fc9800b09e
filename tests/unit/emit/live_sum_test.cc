// The compiler's bound of an arena against a count that knows nothing but the plan: lifetimes that are too short or
// too long make them differ.
#include "tests/support/live_sum.h"

#include <gtest/gtest.h>

#include "../passes_staged/small_models.h"
#include "compiler/emit/rank_plan.h"

namespace pipec {
namespace {

std::unique_ptr<Module> Model(int kind, Mode mode) {
  return kind == 0 ? Chain(8, mode) : kind == 1 ? Skips() : Tied();
}

TEST(LiveSum, IsTheCompilersBound) {
  for (const char* schedule :
       {"gpipe", "1f1b", "eager-1f1b", "interleaved", "zb-h1", "zb-v", "dualpipe-v", "infer"}) {
    const bool infers = schedule == std::string("infer");
    for (int kind = 0; kind < (infers ? 1 : 3); ++kind) {
      for (const int ranks : {1, 2}) {
        const auto module = Model(kind, infers ? Mode::kInfer : Mode::kTrain);
        ASSERT_EQ(Compile(*module, Context(ranks, 6, schedule), Level::kPlanned), absl::OkStatus())
            << schedule << kind;
        const absl::StatusOr<ParameterPlacement> placement = PlaceParameters(*module);
        ASSERT_EQ(placement.status(), absl::OkStatus());
        for (int rank = 0; rank < ranks; ++rank) {
          const absl::StatusOr<plan::RankPlan> plan = MakeRankPlan(*module, rank, *placement, "", nullptr);
          ASSERT_EQ(plan.status(), absl::OkStatus());
          const RankMemory& memory = module->memory[rank];
          const int64_t live = LiveSum(*plan);
          // Scalars and other small things begin at multiples of 64 bytes.
          int64_t rounding = 0;
          for (const Buffer& buffer : memory.buffers) rounding += buffer.aligned_bytes() - buffer.bytes;
          EXPECT_LE(live, memory.lower_bound) << schedule << kind << " of " << ranks << " rank " << rank;
          EXPECT_GE(live + rounding, memory.lower_bound)
              << schedule << kind << " of " << ranks << " rank " << rank;
          EXPECT_LE(memory.lower_bound, memory.arena_bytes);
        }
      }
    }
  }
}

}  // namespace
}  // namespace pipec
