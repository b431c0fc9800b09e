// replicate-update and insert-messages.
#include <gmock/gmock.h>

#include <set>
#include <tuple>

#include "small_models.h"

namespace pipec {
namespace {

using ::testing::IsSupersetOf;
using ::testing::UnorderedElementsAre;
using Pair = std::pair<int, int>;

std::set<Pair> Pairs(const Module& module, MessageKind kind) {
  std::set<Pair> pairs;
  for (const Message& message : module.messages) {
    if (message.kind == kind) pairs.insert({message.from_stage, message.to_stage});
  }
  return pairs;
}

std::vector<std::string> Contents(const Module& module, MessageKind kind, int from, int to) {
  std::vector<std::string> names;
  for (const Message& message : module.messages) {
    if (message.kind != kind || message.from_stage != from || message.to_stage != to) continue;
    for (const Value* value : message.node->inputs()) names.push_back(value->name());
  }
  return names;
}

PassContext Cut(int ranks, std::vector<std::string> cut, const std::string& schedule = "1f1b") {
  PassContext context = Context(ranks, 8, schedule);
  context.options.cut = std::move(cut);
  return context;
}

TEST(InsertMessages, SkipConnectionsGoStraightToTheirStages) {
  auto module = Skips();
  ASSERT_EQ(Compile(*module, Cut(4, {"y0", "y1", "a2"}), Level::kStaged), absl::OkStatus());
  EXPECT_EQ(Pairs(*module, MessageKind::kActivation),
            (std::set<Pair>{{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}}));
  EXPECT_THAT(Contents(*module, MessageKind::kActivation, 0, 3), UnorderedElementsAre("y0"));
  // The gradient of y0 is a running sum that travels down its consumers, 3 to 2 to 1 to 0; so is that of y1.
  EXPECT_EQ(Pairs(*module, MessageKind::kGradient), (std::set<Pair>{{3, 2}, {2, 1}, {1, 0}}));
  // The additions in stage 3 pass one gradient on to y0 and to y1: it is sent once, beside that of the product.
  EXPECT_EQ(Contents(*module, MessageKind::kGradient, 3, 2).size(), 2);
}

TEST(InsertMessages, ValuesWithoutGradientOnlyGoForward) {
  Net net;
  Value* y = net.Layer(0);
  Value* limit = net.graph().AddConstant("limit", {DType::kFloat32, {}}, std::string(4, '\0'));
  Value* mask = net.Emit("Greater", {y, limit}, "mask", Net::Type(DType::kBool));
  Value* ids = net.Emit("Cast", {y}, "ids", Net::Type(DType::kInt64));
  ids->producer()->attributes.Set("to", int64_t{7});
  Value* h = net.Emit("MatMul", {y, net.Weight("w1")}, "h1");
  net.Emit("Where", {mask, h, y}, "masked");
  Value* back = net.Emit("Cast", {ids}, "back");
  back->producer()->attributes.Set("to", int64_t{1});
  net.Emit("Add", {net.graph().FindValue("masked"), back}, "out");
  auto module = net.Finish();
  ASSERT_EQ(Compile(*module, Cut(3, {"ids", "h1"}), Level::kStaged), absl::OkStatus());
  EXPECT_THAT(Contents(*module, MessageKind::kActivation, 0, 2), UnorderedElementsAre("mask", "ids", "y0"));
  for (const Message& message : module->messages) {
    if (message.kind != MessageKind::kGradient) continue;
    for (const Value* value : message.node->inputs())
      EXPECT_TRUE(IsFloat(value->type.dtype)) << value->name();
  }
}

TEST(ReplicateUpdate, EveryOwnerUpdatesASharedParameterFromTheSameSum) {
  auto module = Tied();
  ASSERT_EQ(Compile(*module, Cut(4, {"y0", "y1", "y2"}), Level::kStaged), absl::OkStatus());
  const TrainedParameter* shared = nullptr;
  for (const TrainedParameter& trained : module->training.parameters) {
    if (trained.parameter->name() == "shared") shared = &trained;
  }
  ASSERT_NE(shared, nullptr);
  ASSERT_EQ(shared->updates.size(), 2);
  EXPECT_EQ(shared->updates[0]->stage, 0);
  EXPECT_EQ(shared->updates[1]->stage, 3);
  EXPECT_NE(shared->states[0][0], shared->states[1][0]);
  EXPECT_EQ(Pairs(*module, MessageKind::kTied), (std::set<Pair>{{0, 3}, {3, 0}}));
  int norms = 0;
  for (const Node* node : module->graph.Nodes()) norms += node->Is("SquaredNorm", kPipecDomain);
  EXPECT_EQ(norms, 3);
  // The sum adds the first use first on both owners, whichever of them is local.
  for (const Node* update : shared->updates) {
    const Node* add = update->input(1)->producer();
    ASSERT_TRUE(add->Is("Add"));
    auto source = [](const Value* value) {
      return value->producer()->Is("Message", kPipecDomain) ? value->producer()->input(value->output_index())
                                                            : value;
    };
    EXPECT_EQ(source(add->input(0)), shared->accumulated[0]);
    EXPECT_EQ(source(add->input(1)), shared->accumulated[1]);
  }
}

// Whatever the cut, place order[k] of all packs laid end to end holds the norm of parameter k.
TEST(ReplicateUpdate, NormsAreAddedInParameterOrderOnEveryRank) {
  for (const auto& [ranks, schedule] : std::vector<std::pair<int, std::string>>{
           {1, "1f1b"}, {4, "gpipe"}, {2, "interleaved"}, {1, "interleaved"}}) {
    auto module = Tied();
    ASSERT_EQ(Compile(*module, Context(ranks, 4, schedule), Level::kStaged), absl::OkStatus());
    ASSERT_EQ(module->training.gradient_scales.size(), ranks);
    for (const Node* scale : module->training.gradient_scales) {
      std::vector<std::string> norms;
      for (int i = 2; i < scale->inputs().size(); ++i) {
        const Value* pack = scale->input(i);
        while (pack->producer()->Is("Message", kPipecDomain))
          pack = pack->producer()->input(pack->output_index());
        ASSERT_TRUE(pack->producer()->Is("Pack", kPipecDomain));
        for (const Value* norm : pack->producer()->inputs()) {
          while (norm->producer()->Is("Message", kPipecDomain))
            norm = norm->producer()->input(norm->output_index());
          norms.push_back(norm->producer()->name());
        }
      }
      const std::vector<int64_t> order = scale->attributes.Ints("order");
      ASSERT_EQ(order.size(), module->training.parameters.size());
      for (int k = 0; k < order.size(); ++k) {
        EXPECT_EQ(norms[order[k]],
                  absl::StrCat(module->training.parameters[k].parameter->name(), ".squared_norm"));
      }
    }
  }
}

TEST(ReplicateUpdate, NormsTravelBetweenTheFirstStagesOfRanks) {
  auto module = Chain(4);
  ASSERT_EQ(Compile(*module, Context(2, 4, "interleaved"), Level::kStaged), absl::OkStatus());
  for (const Pair& pair : Pairs(*module, MessageKind::kNorm)) {
    if (module->stages[pair.first].rank == module->stages[pair.second].rank) continue;
    EXPECT_LT(pair.first, 2);
    EXPECT_LT(pair.second, 2);
  }
}

TEST(VerifyStaged, CatchesMutants) {
  auto fresh = [] {
    auto module = Skips();
    EXPECT_EQ(Compile(*module, Cut(4, {"y0", "y1", "a2"}), Level::kStaged), absl::OkStatus());
    EXPECT_EQ(VerifyStaged(*module), absl::OkStatus());
    return module;
  };
  {
    auto module = fresh();  // past its message
    Value* copy = module->messages[0].node->output(0);
    const Use use = copy->uses()[0];
    use.node->SetInput(use.index, module->messages[0].node->input(0));
    EXPECT_FALSE(VerifyStaged(*module).ok());
  }
  {
    auto module = fresh();  // a node moved
    module->graph.FindValue("h1")->producer()->stage = 2;
    EXPECT_FALSE(VerifyStaged(*module).ok());
  }
  {
    auto module = fresh();  // a message that nobody lists
    module->messages.pop_back();
    EXPECT_FALSE(VerifyStaged(*module).ok());
  }
  {
    auto module = fresh();  // listed twice
    module->messages.push_back(module->messages[0]);
    EXPECT_FALSE(VerifyStaged(*module).ok());
  }
  {
    auto module = fresh();  // the other way round
    std::swap(module->messages[0].from_stage, module->messages[0].to_stage);
    EXPECT_FALSE(VerifyStaged(*module).ok());
  }
  {
    auto module = fresh();  // another type on arrival
    module->messages[0].node->output(0)->type.dtype = DType::kFloat64;
    EXPECT_FALSE(VerifyStaged(*module).ok());
  }
  {
    auto module = fresh();  // an empty stage
    module->stages.push_back({3, {}});
    EXPECT_FALSE(VerifyStaged(*module).ok());
  }
  {
    auto module = fresh();  // an owner without update
    module->training.parameters[0].updates[0]->stage = 1;
    EXPECT_FALSE(VerifyStaged(*module).ok());
  }
}

}  // namespace
}  // namespace pipec
