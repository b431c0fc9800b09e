// What the rows of the registry say, against what their generators make.
#include <algorithm>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/rounds.h"
#include "compiler/schedule/schedule.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/schedule/rendezvous.h"

namespace pipec {
namespace {

struct At {
  int P, V, M, r;
  int N() const { return M / std::max(1, M / P); }
};

// Microbatches of one stage, of which V make one of 1/P of the model.
int KeptStages(const Schedule& schedule, int rank) {
  int kept = 0, most = 0;
  for (const Action& action : schedule.ranks[rank]) {
    kept += action.kind == ActionKind::kF ? 1 : action.kind == ActionKind::kI ? 0 : -1;
    most = std::max(most, kept);
  }
  return most;
}

// The text of a row -> the same as a function, in stages: V times what the text says.
const std::map<std::string, int (*)(At)>& Activations() {
  static const std::map<std::string, int (*)(At)> kFormulas = {
      {"M", [](At a) { return a.V * a.M; }},
      {"min(P-r, M)", [](At a) { return std::min(a.P - a.r, a.M); }},
      {"min(2(P-1-r)+1, M)", [](At a) { return std::min(2 * (a.P - 1 - a.r) + 1, a.M); }},
      {"min((V-1)N+2(P-1-r)+1, VM)/V",
       [](At a) { return std::min((a.V - 1) * a.N() + 2 * (a.P - 1 - a.r) + 1, a.V * a.M); }},
      {"((V-1)N+P)/V until W", [](At a) { return (a.V - 1) * a.N() + a.P; }},
      {"P-r", [](At a) { return a.P - a.r; }},
      {"2P until W", [](At a) { return 2 * a.P; }},
      {"P until W", [](At a) { return 2 * a.P; }},
      {"P/2+1 until W, rounded down", [](At a) { return 2 * (a.P / 2 + 1); }},
      {"(P+4)/3 until W, rounded down", [](At a) { return 2 * ((a.P + 4) / 3); }},
      {"P+1/2 until W", [](At a) { return 2 * a.P + 1; }},
  };
  return kFormulas;
}

const std::map<std::string, int (*)(At)>& Messages() {
  static const std::map<std::string, int (*)(At)> kFormulas = {
      {"2(P-1)", [](At a) { return 2 * (a.P - 1); }},
      {"2(VP-1)", [](At a) { return 2 * (a.V * a.P - 1); }},
      {"4(P-1)", [](At a) { return 4 * (a.P - 1); }},
      {"VP-1", [](At a) { return a.V * a.P - 1; }},
  };
  return kFormulas;
}

bool TakesMicrobatches(absl::string_view rule, At a) {
  if (rule == "any") return true;
  if (rule == "1") return a.M == 1;
  if (rule == ">= P") return a.M >= a.P;
  if (rule == ">= 2P") return a.M >= 2 * a.P;
  EXPECT_EQ(rule, "a multiple of max(1, M/P) if V > 1");
  return a.V == 1 || a.M % std::max(1, a.M / a.P) == 0;
}

template <typename Check>
void ForEveryShape(int most_ranks, int most_microbatches, Check check) {
  for (const ScheduleInfo& info : AllSchedules()) {
    for (int P = 1; P <= most_ranks; ++P) {
      for (int V = 1; V <= 4; ++V) {
        for (int M = 1; M <= most_microbatches; ++M) {
          SCOPED_TRACE(absl::StrCat(info.name, " P=", P, " V=", V, " M=", M));
          check(info, At{P, V, M});
        }
      }
    }
  }
}

TEST(Registry, ShapesThatARowNeeds) {
  ForEveryShape(8, 20, [](const ScheduleInfo& info, At a) {
    const bool stages =
        info.needed_virtual_stages == "any" || info.needed_virtual_stages == absl::StrCat(a.V);
    EXPECT_EQ(info.generate({a.P, a.V, a.M}).ok(), stages && TakesMicrobatches(info.needed_microbatches, a));
  });
}

// At most what the row says, at every shape; just that on some rank, with enough microbatches.
TEST(Registry, ActivationsThatARowSays) {
  ForEveryShape(8, 32, [](const ScheduleInfo& info, At a) {
    auto schedule = info.generate({a.P, a.V, a.M});
    if (!schedule.ok() || info.forward_only) return;
    if (schedule->asynchronous()) *schedule = Unroll(*schedule, a.P + 2).schedule;
    const auto formula = Activations().find(std::string(info.activations));
    ASSERT_NE(formula, Activations().end()) << info.activations;
    bool reached = false;
    for (a.r = 0; a.r < a.P; ++a.r) {
      EXPECT_LE(KeptStages(*schedule, a.r), formula->second(a)) << "rank " << a.r;
      reached |= KeptStages(*schedule, a.r) == formula->second(a);
    }
    EXPECT_TRUE(reached || a.P == 1 || a.M < 2 * a.P) << info.activations << " is never needed";
  });
}

TEST(Registry, MessagesThatARowSays) {
  ForEveryShape(5, 5, [](const ScheduleInfo& info, At a) {
    const auto compute = info.generate({a.P, a.V, a.M});
    if (!compute.ok() || a.P == 1) return;
    const auto formula = Messages().find(std::string(info.messages));
    ASSERT_NE(formula, Messages().end()) << info.messages;
    const int S = a.P * a.V;
    const Schedule schedule =
        *AddMessages(*compute, ChainLinks(S, {}, 0, !info.forward_only), std::vector<StageTimes>(S));
    int sends = 0;
    for (const auto& list : schedule.ranks) {
      for (const Action& action : list)
        sends += action.kind == ActionKind::kSendF || action.kind == ActionKind::kSendB;
    }
    EXPECT_EQ(sends, a.M * formula->second(a));
  });
}

TEST(Registry, PlacesStagesAsARowSays) {
  ForEveryShape(4, 8, [](const ScheduleInfo& info, At a) {
    const ScheduleShape shape{a.P, a.V, a.M};
    const auto schedule = info.generate(shape);
    if (!schedule.ok()) return;
    EXPECT_EQ(schedule->rank_of_stage, PlaceStages(shape, info.placement));
    EXPECT_EQ(schedule->name, info.name);
  });
}

}  // namespace
}  // namespace pipec
