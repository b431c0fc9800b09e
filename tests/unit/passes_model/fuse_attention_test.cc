// Which graphs are attention, which only look like it, and that what is fused computes the same.
#include <gmock/gmock.h>

#include <cstring>
#include <map>

#include "absl/strings/str_cat.h"
#include "passes/evaluate.h"
#include "passes/passes.h"
#include "tests/unit/onnx/model_file.h"

namespace pipec {
namespace {

using testing::HasSubstr;

// q, k, v: (2, 3, 4); kt: k with its last two axes swapped.
constexpr char kHead[] =
    "g (float[2,3,4] q, float[2,3,4] k, float[2,3,4] v, float[2,4,3] kt, float[3] m, bool[2,1,3] b) => ";
constexpr char kConstants[] =
    "<bool[3,3] tri = {1,0,0,1,1,0,1,1,1}, bool[3,3] upper = {0,1,1,0,0,1,0,0,0}, float half = {0.5}, float "
    "zero = {0}, "
    "float hidden = {-100000}, float little = {-1}, float least = {-inf}, float[3,3] learned = "
    "{1,2,3,4,5,6,7,8,9}> ";
// Floats that are no parameters.
constexpr char kNodes[] =
    "third = Constant<value = float[1] {0.3}>() "
    "added = Constant<value = float[1,3,3] {0,-10000,-1e9,0,0,-1e38,0,0,0}>() "
    "bias = Constant<value = float[3,3] {0,-10000,-1e9,0,1,-1e38,0,0,0}>() ";

std::unique_ptr<Module> Model(const std::string& outputs, const std::string& body) {
  return Import(Text(absl::StrCat(kHead, "(", outputs, ") ", kConstants, "{", kNodes, body, "}")));
}

struct Fused {
  std::unique_ptr<Module> module;
  bool changed = false;
  // The one FusedAttention; null if there is none.
  const Node* node = nullptr;
};

Fused Fuse(const std::string& outputs, const std::string& body, Mode mode = Mode::kTrain) {
  Fused fused{Model(outputs, body)};
  fused.module->mode = mode;
  auto changed = FuseAttention(*fused.module, {});
  EXPECT_TRUE(changed.ok()) << changed.status();
  EXPECT_EQ(VerifyModel(*fused.module), absl::OkStatus());
  fused.changed = changed.ok() && *changed;
  for (const Node* node = fused.module->graph.first_node(); node; node = node->next()) {
    if (node->Is("FusedAttention", kPipecDomain)) fused.node = node;
  }
  EXPECT_EQ(fused.changed, fused.node != nullptr);
  return fused;
}

std::string Ops(const Graph& graph) {
  std::string text;
  for (const Node* node = graph.first_node(); node; node = node->next())
    absl::StrAppend(&text, node->op(), " ");
  return text;
}

// Contents of the first output; inputs are the same for equal types.
std::vector<float> Run(const Graph& graph) {
  std::map<const Value*, std::string> contents;
  for (const Value* value : graph.Values()) {
    if (value->producer()) continue;
    if (value->kind() != ValueKind::kInput) {
      contents[value] = *ReadData(*value);
      continue;
    }
    std::string bytes;
    for (int64_t i = 0; i < value->type.elements(); ++i) {
      const float x = std::sin(1.7f * static_cast<float>(i + value->name()[0]));
      if (value->type.dtype == DType::kBool) {
        bytes += static_cast<char>(i != 1);
      } else {
        bytes.append(reinterpret_cast<const char*>(&x), sizeof x);
      }
    }
    contents[value] = bytes;
  }
  for (const Node* node = graph.first_node(); node; node = node->next()) {
    std::vector<const std::string*> inputs;
    for (const Value* input : node->inputs()) inputs.push_back(input ? &contents.at(input) : nullptr);
    auto results = Evaluate(*node, inputs);
    EXPECT_TRUE(results.ok()) << node->op() << ": " << results.status();
    if (!results.ok()) return {};
    for (size_t k = 0; k < results->size(); ++k) {
      if (node->output(static_cast<int>(k))) contents[node->output(static_cast<int>(k))] = (*results)[k];
    }
  }
  const std::string& bytes = contents.at(graph.outputs[0]);
  std::vector<float> floats(bytes.size() / sizeof(float));
  std::memcpy(floats.data(), bytes.data(), bytes.size());
  return floats;
}

// The attributes of what becomes of `body`, whose result is o; that it is all that is left but for nodes of `rest`, and
// computes what the body did.
std::string Attention(const std::string& body, const std::string& rest = "") {
  const Fused fused = Fuse("o", body);
  if (!fused.node) return "nothing";
  EXPECT_EQ(Ops(fused.module->graph), absl::StrCat(rest, "FusedAttention ")) << body;
  const std::vector<float> wanted = Run(Model("o", body)->graph), got = Run(fused.module->graph);
  EXPECT_EQ(wanted.size(), 24);
  EXPECT_THAT(got, testing::Pointwise(testing::NanSensitiveFloatNear(1e-5f), wanted)) << body;
  std::string text;
  for (const auto& [name, value] : fused.node->attributes) absl::StrAppend(&text, name, " ");
  absl::StrAppend(&text, fused.node->attributes.Float("scale", -1));
  if (const Value* mask = fused.node->input(3)) absl::StrAppend(&text, " ", mask->name());
  return text;
}

TEST(FuseAttention, TheFactorStandsAnywhere) {
  EXPECT_EQ(Attention("p = MatMul(q, kt) w = Softmax(p) o = MatMul(w, v)", "Transpose "), "scale 1");
  EXPECT_EQ(Attention("p = MatMul(q, kt) s = Mul(half, p) w = Softmax(s) o = MatMul(w, v)", "Transpose "),
            "scale 0.5");
  EXPECT_EQ(Attention("p = MatMul(q, kt) s = Div(p, half) w = Softmax(s) o = MatMul(w, v)", "Transpose "),
            "scale 2");
  EXPECT_EQ(Attention("a = Mul(q, half) c = Mul(kt, half) p = MatMul(a, c) w = Softmax(p) o = MatMul(w, v)",
                      "Transpose "),
            "scale 0.25");
  EXPECT_EQ(Attention("a = Div(q, third) p = MatMul(a, kt) s = Mul(p, half) w = Softmax(s) o = MatMul(w, v)",
                      "Transpose "),
            "scale 1.66667");
}

TEST(FuseAttention, FindsTheKeysBehindTheirTranspose) {
  EXPECT_EQ(Attention("t = Transpose<perm = [0, 2, 1]>(k) p = MatMul(q, t) w = Softmax(p) o = MatMul(w, v)"),
            "scale 1");
  // Another order of axes in front of it: one transpose for two.
  const Fused fused = Fuse("o", R"(
      s1 = Constant<value_ints = [2, 3, 2, 2]>() k4 = Reshape(k, s1) q4 = Reshape(q, s1) v4 = Reshape(v, s1)
      a = Transpose<perm = [0, 2, 1, 3]>(q4) c = Transpose<perm = [0, 2, 3, 1]>(k4)
      e = Transpose<perm = [0, 2, 1, 3]>(v4)
      p = MatMul(a, c) w = Softmax(p) o = MatMul(w, e))");
  ASSERT_NE(fused.node, nullptr);
  EXPECT_EQ(fused.node->input(1)->producer()->attributes.Ints("perm"), (std::vector<int64_t>{0, 2, 1, 3}));
  // As PyTorch's exporter writes it.
  const Fused reshaped = Fuse("o", R"(
      s1 = Constant<value_ints = [2, 1, 3, 4]>() k4 = Reshape(k, s1) q4 = Reshape(q, s1) v4 = Reshape(v, s1)
      s2 = Constant<value_ints = [2, 3, 4]>() k3 = Reshape(k4, s2) t3 = Transpose<perm = [0, 2, 1]>(k3)
      s3 = Constant<value_ints = [2, 1, 4, 3]>() t4 = Reshape(t3, s3)
      p = MatMul(q4, t4) w = Softmax(p) o = MatMul(w, v4))");
  ASSERT_NE(reshaped.node, nullptr);
  EXPECT_EQ(reshaped.node->input(1)->name(), "k4");
}

TEST(FuseAttention, Masks) {
  const auto of = [](const std::string& mask, const std::string& rest = "Transpose ") {
    return Attention(absl::StrCat("p = MatMul(q, kt) ", mask, " w = Softmax(s) o = MatMul(w, v)"), rest);
  };
  // What hides the columns behind each row.
  EXPECT_EQ(of("s = Where(tri, p, hidden)"), "causal scale 1");
  EXPECT_EQ(of("s = Where(upper, hidden, p)"), "causal scale 1");
  EXPECT_EQ(of("s = Add(p, added)"), "causal scale 1");
  EXPECT_EQ(of("x = Mul(p, half) s = Where(tri, x, hidden)"), "causal scale 0.5");
  // Beside another mask.
  EXPECT_EQ(of("x = Where(tri, p, least) s = Add(x, m)"), "causal scale 1 m");
  EXPECT_EQ(of("x = Add(m, p) s = Where(tri, x, least)"), "causal scale 1 m");
  EXPECT_EQ(of("x = Where(b, p, little) s = Where(tri, x, least)"), "causal fill scale 1 b");
  EXPECT_EQ(of("x = Where(tri, p, least) s = Where(b, x, least)"), "causal fill scale 1 b");
  // What lies behind a row is seen again where the other mask hides all else, or hides less.
  EXPECT_EQ(of("x = Where(tri, p, least) s = Where(b, x, little)"), "nothing");
  EXPECT_EQ(of("x = Where(tri, p, hidden) s = Add(x, m)"), "nothing");
  EXPECT_EQ(of("x = Add(p, m) s = Where(tri, x, hidden)"), "nothing");
  // What does not.
  EXPECT_EQ(of("s = Where(tri, p, little)"), "fill scale 1 tri");
  EXPECT_EQ(of("s = Where(tri, little, p)"), "fill scale 1 tri/not");
  EXPECT_EQ(of("s = Add(p, bias)"), "scale 1 bias");
  EXPECT_EQ(of("s = Add(p, m)"), "scale 1 m");
  EXPECT_EQ(of("s = Where(b, p, hidden)"), "fill scale 1 b");
  EXPECT_EQ(of("s = Where(b, hidden, p)", "Transpose Not "), "fill scale 1 b/not");
}

TEST(FuseAttention, RowsThatAreNan) {
  EXPECT_EQ(
      Attention("p = MatMul(q, kt) s = Where(b, p, hidden) x = Softmax(s) n = IsNaN(x) w = Where(n, zero, x) "
                "o = MatMul(w, v)",
                "Transpose "),
      "fill scale zero_rows 1 b");
  EXPECT_EQ(Attention("p = MatMul(q, kt) x = Softmax(p) n = IsNaN(x) w = Where(n, half, x) o = MatMul(w, v)"),
            "nothing");
}

// What the fused op would not give, or nobody could learn from.
TEST(FuseAttention, LeavesAlone) {
  const auto left = [](const std::string& outputs, const std::string& body) {
    const Fused fused = Fuse(outputs, body);
    return !fused.changed;
  };
  const std::string p = "p = MatMul(q, kt) ", end = " o = MatMul(w, v)";
  EXPECT_TRUE(left("o, w", p + "w = Softmax(p)" + end)) << "the weights are a result";
  EXPECT_TRUE(left("o, x", p + "w = Softmax(p) x = Relu(w)" + end)) << "the weights have another user";
  EXPECT_TRUE(left("o, s", p + "s = Mul(p, half) w = Softmax(s)" + end)) << "the scores are a result";
  EXPECT_TRUE(left("o, x", p + "x = Relu(p) w = Softmax(p)" + end)) << "the scores have another user";
  EXPECT_TRUE(left("o", p + "w = Softmax<axis = 1>(p)" + end)) << "columns are normalised";
  EXPECT_TRUE(left("o", p + "w = Softmax(p) o = MatMul(kt, w)")) << "the weights are the right factor";
  EXPECT_TRUE(left("o", p + "s = Mul(p, learned) w = Softmax(s)" + end)) << "a factor that is no constant";
  EXPECT_TRUE(left("o", "p = MatMul(q, kt) s = Mul(p, m) w = Softmax(s)" + end)) << "a factor of each column";
}

TEST(FuseAttention, LeavesDropoutAlone) {
  const std::string body = "p = MatMul(q, kt) x = Softmax(p) w = Dropout(x, half) o = MatMul(w, v)";
  for (const Mode mode : {Mode::kTrain, Mode::kInfer}) {
    auto module = Model("o", body);
    module->mode = mode;
    ASSERT_TRUE(LowerDropout(*module, {}).ok());
    EXPECT_EQ(*FuseAttention(*module, {}), mode == Mode::kInfer);
  }
}

TEST(FuseAttention, AMaskThatLearnsStaysOutsideInTraining) {
  const std::string body = "p = MatMul(q, kt) x = Neg(learned) s = Add(p, x) w = Softmax(s) o = MatMul(w, v)";
  EXPECT_FALSE(Fuse("o", body).changed);
  EXPECT_TRUE(Fuse("o", body, Mode::kInfer).changed);
  // Through a comparison nothing learns.
  EXPECT_TRUE(Fuse("o", R"(p = MatMul(q, kt) x = Greater(learned, zero) s = Where(x, p, hidden) w = Softmax(s)
                           o = MatMul(w, v))")
                  .changed);
}

// GPT-2's, of eight samples: operands have so many elements that the product of three counts is no int64.
TEST(FuseAttention, OperandsMayBeLargeButNotEmpty) {
  const auto fuses = [](const std::string& keys) {
    const auto module =
        Import(Text(absl::StrCat("g (float[8,12,1024,64] q, float[8,12,64,", keys, "] kt, float[8,12,", keys,
                                 ",64] v) => (o) {p = MatMul(q, kt) w = Softmax(p) o = MatMul(w, v)}")));
    const auto changed = FuseAttention(*module, {});
    EXPECT_TRUE(changed.ok()) << changed.status();
    return changed.ok() && *changed;
  };
  EXPECT_TRUE(fuses("1024"));
  EXPECT_FALSE(fuses("0"));
}

TEST(FuseAttention, OneMaskOfAnyKindAndNoFactorBehindIt) {
  const std::string end = " w = Softmax(s) o = MatMul(w, v)";
  EXPECT_FALSE(Fuse("o", "p = MatMul(q, kt) x = Add(p, m) s = Where(b, x, hidden)" + end).changed);
  EXPECT_FALSE(Fuse("o", "p = MatMul(q, kt) x = Add(p, m) s = Mul(x, half)" + end).changed);
  EXPECT_TRUE(Fuse("o", "p = MatMul(q, kt) x = Where(tri, p, hidden) s = Mul(x, half)" + end).changed);
}

}  // namespace
}  // namespace pipec
