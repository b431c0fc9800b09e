// Each test breaks one promise of a good module; the verifier must name it.
#include <gmock/gmock.h>

#include "compiler/ir/verify.h"

namespace pipec {
namespace {

using testing::HasSubstr;

struct Good {
  Module module;
  Graph& graph = module.graph;
  Value* x = graph.AddValue(ValueKind::kInput, "x", {DType::kFloat32, {2}});
  Value* c = graph.AddConstant("c", {DType::kFloat32, {2}}, std::string(8, '\0'));
  Node* add = graph.AddNode({.op = "Add", .inputs = {x, c}, .outputs = {{DType::kFloat32, {2}}}});
  Node* relu = graph.AddNode({.op = "Relu", .inputs = {add->output(0)}, .outputs = {{DType::kFloat32, {2}}}});
  Good() {
    module.microbatch_size = 2;
    graph.outputs = {relu->output(0)};
  }
  std::string Verdict() const { return std::string(VerifyModel(module).message()); }
};

TEST(VerifyModel, AcceptsAGoodModule) { EXPECT_EQ(Good().Verdict(), ""); }

TEST(VerifyModel, UseBeforeDefinition) {
  Good good;
  good.graph.Move(good.relu, good.add);
  EXPECT_THAT(good.Verdict(), HasSubstr("node 'Relu' (Relu) uses operand 0 before it is defined"));
}

TEST(VerifyModel, ForeignValues) {
  Good good, other;
  good.graph.outputs = {other.x};
  EXPECT_THAT(good.Verdict(), HasSubstr("output"));
  Good third;
  third.relu->SetInput(0, other.x);
  EXPECT_THAT(third.Verdict(), HasSubstr("before it is defined"));
}

TEST(VerifyModel, TypesAndBatchAxes) {
  Good untyped, negative, beyond, wrong;
  untyped.x->type.dtype = DType::kUndefined;
  EXPECT_THAT(untyped.Verdict(), HasSubstr("'x' has no type"));
  negative.x->type.shape = {-1};
  EXPECT_THAT(negative.Verdict(), HasSubstr("negative dimension"));
  beyond.x->batch_axis = 1;
  EXPECT_THAT(beyond.Verdict(), HasSubstr("batch axis 1"));
  wrong.x->batch_axis = 0;
  wrong.module.microbatch_size = 3;
  EXPECT_THAT(wrong.Verdict(), HasSubstr("3 samples"));
  wrong.module.microbatch_size = 1;  // two entries a sample: of a result, not of an input
  EXPECT_THAT(wrong.Verdict(), HasSubstr("a microbatch has 1 sample"));
  wrong.x->batch_axis = -1;
  wrong.relu->output(0)->batch_axis = 0;
  EXPECT_EQ(wrong.Verdict(), "");
}

TEST(VerifyModel, Contents) {
  Good shorter, misplaced;
  shorter.c->type.shape = {3};
  EXPECT_THAT(shorter.Verdict(), HasSubstr("contents of 8 bytes"));
  misplaced.x->data = misplaced.c->data;
  EXPECT_THAT(misplaced.Verdict(), HasSubstr("neither constant nor parameter"));
}

TEST(VerifyModel, Origins) {
  Good forward, later;
  forward.relu->origin = forward.add;
  EXPECT_THAT(forward.Verdict(), HasSubstr("is a forward node, but has an origin"));
  later.add->kind = Kind::kI;
  later.add->origin = later.relu;
  EXPECT_THAT(later.Verdict(), HasSubstr("does not come before"));
}

// Use lists after every way to change them.
TEST(Graph, UseListsStayTrue) {
  Good good;
  std::vector<Node*> users;
  for (int i = 0; i < 50; ++i) {
    users.push_back(
        good.graph.AddNode({.op = "Add", .inputs = {good.c, good.c}, .outputs = {{DType::kFloat32, {2}}}},
                           i % 2 ? good.relu : nullptr));
  }
  for (int i = 0; i < 50; i += 3) good.graph.Erase(users[i]);
  for (int i = 1; i < 50; i += 3) users[i]->SetInput(i % 2, good.x);
  for (int i = 2; i < 50; i += 6) users[i]->Become("Sum", "", {good.x, good.c, good.c});
  EXPECT_EQ(good.Verdict(), "");
  good.graph.ReplaceAllUses(good.c, good.x);
  EXPECT_EQ(good.Verdict(), "");
  EXPECT_TRUE(good.c->uses().empty());
  good.graph.Erase(good.c);
  EXPECT_EQ(good.Verdict(), "");
}

}  // namespace
}  // namespace pipec
