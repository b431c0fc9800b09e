// The passes of level model, each on the smallest model that shows it, and the whole row on one.
#include "passes/passes.h"

#include <gmock/gmock.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "compiler/ir/print.h"
#include "compiler/onnx/export/module.h"
#include "passes/evaluate.h"
#include "tests/unit/onnx/model_file.h"

namespace pipec {
namespace {

using testing::AllOf;
using testing::HasSubstr;

bool Apply(PassFunction pass, Module& module) {
  auto changed = pass(module, {});
  EXPECT_TRUE(changed.ok()) << changed.status();
  EXPECT_EQ(VerifyModel(module), absl::OkStatus());
  return changed.ok() && *changed;
}

// "Op(a,b)->c Op..." in execution order.
std::string Nodes(const Module& module) {
  std::string text;
  for (const Node* node = module.graph.first_node(); node; node = node->next()) {
    absl::StrAppend(&text, node->op(), "(");
    for (const Value* input : node->inputs()) absl::StrAppend(&text, input ? input->name() : "-", ",");
    text.back() = ')';
    absl::StrAppend(&text, "->", node->output(0)->name(), " ");
  }
  return text;
}

TEST(EliminateIdentity, KeepsTheNamesOfOutputs) {
  auto module = Import(Text(R"(g (float[2] x) => (float[2] y, float[2] z) {
        a = Identity(x)
        b = Relu(a)
        y = Identity(b)
        z = Identity(x)
      })"));
  EXPECT_TRUE(Apply(EliminateIdentity, *module));
  EXPECT_EQ(Nodes(*module), "Relu(x)->y Identity(x)->z ");
  EXPECT_FALSE(Apply(EliminateIdentity, *module));
}

// What float32 holds and 16 bits store is exported as it is stored, with the cast that makes it float32.
TEST(WidenSmallFloats, ExportsAndNamesWhatItCannotDo) {
  auto module = Import(Text(R"(g (float[2] x) => (float[2] y) <bfloat16[2] w = {16256, 16384}> {
        a = Cast<to = 16>(x)
        b = Mul(a, w)
        y = Cast<to = 1>(b)
      })"));
  EXPECT_TRUE(Apply(WidenSmallFloats, *module));
  EXPECT_FALSE(Apply(WidenSmallFloats, *module));
  EXPECT_TRUE(Apply(EliminateIdentity, *module));
  EXPECT_EQ(Nodes(*module), "Mul(x,w)->y ");
  auto exported = ExportModule(*module, {});
  ASSERT_TRUE(exported.ok()) << exported.status();
  auto again = ImportModel(WriteFile("widened.onnx", *exported), {});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(Nodes(**again), "Cast(w/bfloat16)->w Mul(x,w)->y ");
  EXPECT_EQ((*again)->graph.FindValue("w/bfloat16")->type, (TensorType{DType::kBFloat16, {2}}));

  module = Import(Text(R"(g (float16[2] x) => (uint16[2] y) { y = BitCast<to = 4>(x) })", 26));
  EXPECT_EQ(WidenSmallFloats(*module, {}).status().code(), absl::StatusCode::kUnimplemented);
}

TEST(FoldConstants, ComputesMasksButNeverParameters) {
  auto module = Import(Text(R"(g (float[16,16] x) => (y, t) <float[2] w = {1, 2}, int64[2] shape = {16, 16}> {
        ones = ConstantOfShape<value = float[1] {1}>(shape)
        mask = Trilu<upper = 0>(ones)
        y = Mul(x, mask)
        t = Neg(w)
      })"));
  EXPECT_TRUE(Apply(FoldConstants, *module));
  EXPECT_EQ(Nodes(*module), "Mul(x,mask)->y Neg(w)->t ");
  const std::string& bytes = *module->graph.FindValue("mask")->data.bytes;
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 16; ++j) {
      float value;
      std::memcpy(&value, bytes.data() + (i * 16 + j) * sizeof(float), sizeof(float));
      EXPECT_EQ(value, j <= i ? 1 : 0);
    }
  }
}

TEST(FuseTransposeMatmul, GoesIntoEveryProduct) {
  auto module = Import(Text(R"(g (float[2,3] x, float[3,2] z) => (a, b, c, t)
      <float[4,3] w = {1,2,3,4,5,6,7,8,9,10,11,12}> {
        t = Transpose<perm = [1, 0]>(w)
        a = MatMul(x, t)
        u = Transpose(z)
        b = MatMul(u, t)
        c = MatMul(t, w)
      })"));
  EXPECT_TRUE(Apply(FuseTransposeMatmul, *module));
  EXPECT_EQ(Nodes(*module), "Transpose(w)->t FusedMatMul(x,w)->a FusedMatMul(z,w)->b FusedMatMul(w,w)->c ");
  EXPECT_EQ(module->graph.outputs[1]->producer()->attributes.Int("trans_a"), 1);
  EXPECT_EQ(module->graph.outputs[1]->producer()->attributes.Int("trans_b"), 1);
  EXPECT_EQ(module->graph.outputs[2]->producer()->attributes.Int("trans_b"), 0);
}

constexpr char kBiases[] = R"(g (float[2,3] x, float[4] z) => (a, b, c, d, e, f, g)
      <float[3,4] w = {1,2,3,4,5,6,7,8,9,10,11,12}, float[4] v = {1,2,3,4}, float[1,4] row = {1,2,3,4},
       float[2,4] m = {1,2,3,4,5,6,7,8}, float[3] u = {1,2,3}, float[2] two = {1,2}> {
        p = MatMul(x, w)
        a = Add(v, p)
        q = MatMul(x, w)
        b = Add(q, v)
        c = Relu(q)
        r = MatMul(x, w)
        d = Add(r, z)
        s = MatMul(x, w)
        e = Add(s, row)
        t = MatMul(x, w)
        f = Add(t, m)
        k = MatMul(x, u)
        g = Add(k, two)
      })";

// Not where the product is in use elsewhere (b), or the other operand is no parameter of its columns (d to g).
TEST(FuseMatmulBias, OnlyWhatIsABias) {
  auto module = Import(Text(kBiases));
  EXPECT_TRUE(Apply(FuseMatmulBias, *module));
  EXPECT_EQ(Nodes(*module),
            "FusedMatMul(x,w,v)->a MatMul(x,w)->q Add(q,v)->b Relu(q)->c MatMul(x,w)->r Add(r,z)->d "
            "MatMul(x,w)->s Add(s,row)->e MatMul(x,w)->t Add(t,m)->f MatMul(x,u)->k Add(k,two)->g ");
}

// --cut=t names the product: the fused node goes by that name, and the cut is behind the bias.
TEST(FuseMatmulBias, ACutAtTheProductIsOneBehindTheBias) {
  PassContext context;
  for (const std::vector<std::string>& cut : {std::vector<std::string>{"t"}, {"t", "y"}, {}}) {
    auto module = Import(Text(R"(g (float[2,3] x) => (z)
      <float[3,4] w = {1,2,3,4,5,6,7,8,9,10,11,12}, float[4] v = {1,2,3,4}> {
        t = MatMul(x, w)
        y = Add(t, v)
        z = Relu(y)
      })"));
    context.options.cut = cut;
    auto changed = FuseMatmulBias(*module, context);
    ASSERT_TRUE(changed.ok() && *changed);
    const std::string name = cut.size() == 1 ? "t" : "y";
    EXPECT_EQ(Nodes(*module), "FusedMatMul(x,w,v)->" + name + " Relu(" + name + ")->z ");
  }
}

TEST(FuseTransposeMatmul, LeavesOtherPermutations) {
  auto module = Import(Text(R"(g (float[2,3,4] x, float[2,3,4] z) => (y) {
        t = Transpose<perm = [2, 1, 0]>(x)
        u = Transpose<perm = [1, 0, 2]>(z)
        v = Transpose(u)
        y = MatMul(t, v)
      })"));
  EXPECT_FALSE(Apply(FuseTransposeMatmul, *module));
}

TEST(SplitParameterOps, OneCopyAConsumerDirectlyBeforeIt) {
  auto module = Import(Text(R"(g (float[2,2] x) => (c) <float[2,2] w = {1,2,3,4}> {
        s = Neg(w)
        t = Exp(s)
        a = MatMul(x, t)
        b = MatMul(a, t)
        c = Add(b, s)
      })"));
  EXPECT_TRUE(Apply(SplitParameterOps, *module));
  EXPECT_EQ(Nodes(*module),
            "Neg(w)->s Exp(s)->t MatMul(x,t)->a Neg(w)->s_1 Exp(s_1)->t_1 MatMul(a,t_1)->b Neg(w)->s_2 "
            "Add(b,s_2)->c ");
  EXPECT_FALSE(Apply(SplitParameterOps, *module));
}

TEST(EliminateDead, TakesNodesAndConstantsKeepsAndNamesInputsAndParameters) {
  auto module = Import(Text(R"(g (float[2] x, float[2] unused) => (y)
      <float[2] w = {1, 2}, float[2] idle = {1, 2}, int64[1] axes = {0}> {
        y = Add(x, w)
        d = Exp(y)
        e = ReduceSum(d, axes)
      })"));
  EXPECT_TRUE(Apply(EliminateDead, *module));
  EXPECT_EQ(Nodes(*module), "Add(x,w)->y ");
  EXPECT_EQ(module->graph.FindValue("axes"), nullptr);
  EXPECT_NE(module->graph.FindValue("idle"), nullptr);
  EXPECT_THAT(Print(*module),
              AllOf(HasSubstr("no output depends on: unused"), HasSubstr("no output depends on: idle")));
}

TEST(InferBatchAxis, FollowsTheSamples) {
  auto module = Import(
      Text(R"(g (float[N,3,4] x) => (y, s, m) <float[4,5] w = {0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0}> {
        h = MatMul(x, w)
        t = Transpose<perm = [1, 0, 2]>(h)
        y = Relu(t)
        axes = Constant<value_ints = [0]>()
        s = ReduceSum(h, axes)
        m = Exp(h)
      })"),
      {.microbatch_size = 2});
  // Import has found them as well; later passes make values that have none yet.
  for (Value* value : module->graph.Values()) {
    if (value->producer()) value->batch_axis = -1;
  }
  EXPECT_TRUE(Apply(InferBatchAxis, *module));
  EXPECT_FALSE(Apply(InferBatchAxis, *module));
  EXPECT_EQ(module->graph.outputs[0]->batch_axis, 1);
  EXPECT_EQ(module->graph.outputs[1]->batch_axis, -1);
  EXPECT_EQ(module->graph.outputs[2]->batch_axis, 0);
}

// A merged axis holds the samples one after the other; dropout and losses are told how many there are.
TEST(InferBatchAxis, KeepsAMergedAxis) {
  auto module = Import(
      Text(
          R"(g (float[N,3,4] x, int64[N,3] t) => (l) <float[4,5] w = {0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0}> {
        rows = Constant<value_ints = [-1, 4]>()
        h = Reshape(x, rows)
        d = Dropout(h)
        y = MatMul(d, w)
        flat = Constant<value_ints = [-1]>()
        u = Reshape(t, flat)
        l = SoftmaxCrossEntropyLoss<reduction = "sum">(y, u)
      })"),
      {.microbatch_size = 2});
  EXPECT_TRUE(Apply(LowerDropout, *module));
  EXPECT_TRUE(Apply(InferBatchAxis, *module));
  const Node* loss = module->graph.outputs[0]->producer();
  const Node* dropout = loss->input(0)->producer()->input(0)->producer();
  for (const Node* node : {loss, dropout}) {
    EXPECT_EQ(node->attributes.Int("batch_axis", -1), 0);
    EXPECT_EQ(node->attributes.Int("samples"), 2);
  }
  EXPECT_THAT(Print(*module), HasSubstr("y: float32[6,5] batch axis 0 (2x3)"));
}

TEST(LowerDropout, TrainAndInfer) {
  const std::string text = Text(R"(g (float[N,4] x) => (y, z) <float r = {0.25}, bool off = {0}> {
        h = Exp(x)
        [first] d, mask = Dropout(h, r)
        y = Neg(d)
        [second] e = Dropout(h)
        [third] f = Dropout(e, r, off)
        z = Neg(f)
      })");
  auto train = Import(text, {.microbatch_size = 2});
  EXPECT_TRUE(Apply(LowerDropout, *train));
  EXPECT_TRUE(Apply(InferBatchAxis, *train));
  const Node* first = train->graph.outputs[0]->producer()->input(0)->producer();
  const Node* second = train->graph.outputs[1]->producer()->input(0)->producer();
  ASSERT_TRUE(first->Is("Dropout", kPipecDomain) && second->Is("Dropout", kPipecDomain));
  EXPECT_EQ(first->name(), "first");
  EXPECT_EQ(first->attributes.Float("ratio"), 0.25f);
  EXPECT_EQ(second->attributes.Float("ratio"), 0.5f);
  EXPECT_EQ(first->attributes.Int("batch_axis"), 0);
  EXPECT_NE(first->attributes.Int("key"), second->attributes.Int("key"));
  auto infer = Import(text);
  infer->mode = Mode::kInfer;
  EXPECT_TRUE(Apply(LowerDropout, *infer));
  EXPECT_EQ(Nodes(*infer), "Exp(x)->h Neg(h)->y Neg(h)->z ");
}

}  // namespace
}  // namespace pipec
