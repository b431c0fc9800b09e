// Low-rank adaptation (Hu et al., 2021), as peft does it: --lora=REGEX:RANK.
//   before:  y = MatMul(x, w)                                  w [in, out] learns
//   after:   y.frozen = MatMul(x, w); h = FusedMatMul(x, w.lora_A); d = FusedMatMul(h, w.lora_B); y = Add(y.frozen, d)
//            w stays; w.lora_A [in, rank], w.lora_B [rank, out] learn
// The same for Gemm and FusedMatMul, transposed or not. As peft by default: A drawn from U(-1/sqrt(in), 1/sqrt(in)),
// B zero, alpha = rank, so that the scale is 1 and a fresh model computes what it did. piperun --export adds A B to w.
// Level model, kept. After fusion, which takes transposes of weights away, and after split-parameter-ops; before the
// batch axis, which the new values need.
#include <algorithm>
#include <cmath>
#include <memory>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/ops/low_rank.h"
#include "passes/passes.h"
#include "passes/stable_hash.h"
#include "runtime/base/regex.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

constexpr int kWeight = 1;  // the operand that is adapted

bool IsProduct(const Node& node) {
  return node.Is("MatMul") || node.Is("Gemm") || node.Is("FusedMatMul", kPipecDomain);
}

bool TransposesWeight(const Node& node) {
  return node.attributes.Int(node.Is("Gemm") ? "transB" : "trans_b") != 0;
}

// Whether every use of a weight is one that can be adapted, and the same way round; if none is a product it was not
// meant. `why_not` says what stands in the way.
bool CanAdapt(const Value& weight, std::string& why_not) {
  bool any = false;
  const Node* other = nullptr;
  for (const Use& use : weight.uses()) {
    const bool adaptable = IsProduct(*use.node) && use.index == kWeight;
    any |= adaptable;
    if (!adaptable || TransposesWeight(*use.node) != TransposesWeight(*weight.uses()[0].node))
      other = use.node;
  }
  if (any && other) {
    why_not = absl::StrCat("'", weight.name(), "' (node ", other->name(), ", ", other->op(),
                           ", uses it another way)");
  }
  return any && !other;
}

// [rows, columns]; uniform in [-bound, bound), the same for the same name and seed.
Value* AddFactor(Graph& graph, const std::string& name, DType dtype, int64_t rows, int64_t columns,
                 double bound, uint64_t seed) {
  Value* value = graph.AddValue(ValueKind::kParameter, name, {dtype, {rows, columns}});
  auto bytes = std::make_shared<std::string>();
  std::mt19937_64 random(seed * 0x9E3779B97F4A7C15u + StableHash(name));
  for (int64_t i = 0; i < rows * columns; ++i) {
    const double x = bound * (static_cast<double>(random() >> 11) * 0x1p-52 - 1);
    const float narrow = static_cast<float>(x);
    dtype == DType::kFloat64 ? bytes->append(reinterpret_cast<const char*>(&x), sizeof(x))
                             : bytes->append(reinterpret_cast<const char*>(&narrow), sizeof(narrow));
  }
  value->data.length = bytes->size();
  value->data.bytes = std::move(bytes);
  return value;
}

struct Factors {
  Value *weight, *a, *b;
  bool transposed;
};

Factors AddFactors(Graph& graph, Value* weight, int64_t rank, uint64_t seed) {
  const bool transposed = TransposesWeight(*weight->uses()[0].node);
  const int64_t in = weight->type.shape[transposed ? 1 : 0], out = weight->type.shape[transposed ? 0 : 1];
  const auto factor = [&](const char* suffix, int64_t rows, int64_t columns, double bound) {
    return AddFactor(graph, absl::StrCat(weight->name(), suffix), weight->type.dtype, rows, columns, bound,
                     seed);
  };
  Value* a = factor(".lora_A", in, rank, 1 / std::sqrt(static_cast<double>(in)));
  return {weight, a, factor(".lora_B", rank, out, 0), transposed};
}

void AddProducts(Graph& graph, Node* node, const Factors& factors) {
  const bool gemm = node->Is("Gemm");
  Value* const y = node->output(0);
  Node* const next = node->next();
  Node* sum = graph.AddNode(
      {.op = "Add", .name = absl::StrCat(node->name(), ".adapted"), .inputs = {}, .outputs = {y->type}},
      next);
  graph.ReplaceAllUses(y, sum->output(0));
  // --loss and --cut know the result by its name.
  const std::string name = y->name();
  graph.Rename(y, absl::StrCat(name, ".frozen"));
  graph.Rename(sum->output(0), name);
  std::swap(sum->output(0)->output_name, y->output_name);
  TensorType inner = y->type;
  inner.shape.back() = factors.a->type.shape[1];
  Node* down = graph.AddNode({.op = "FusedMatMul",
                              .domain = kPipecDomain,
                              .name = absl::StrCat(node->name(), ".lora_A"),
                              .inputs = {node->input(0), factors.a},
                              .outputs = {inner}},
                             sum);
  down->attributes.Set("trans_a", node->attributes.Int(gemm ? "transA" : "trans_a"));
  Node* up = graph.AddNode({.op = "FusedMatMul",
                            .domain = kPipecDomain,
                            .name = absl::StrCat(node->name(), ".lora_B"),
                            .inputs = {down->output(0), factors.b},
                            .outputs = {y->type}},
                           sum);
  for (Node* product : {down, up}) {
    product->attributes.Set(kLowRankOf, factors.weight->name());
    product->attributes.Set("transposed", int64_t{factors.transposed});
  }
  up->attributes.Set("alpha", node->attributes.Float("alpha", 1));
  sum->Become("Add", "", {y, up->output(0)});
}

}  // namespace

absl::StatusOr<bool> AddLora(Module& module, const PassContext& context) {
  Graph& graph = module.graph;
  std::vector<Factors> adapted;
  std::vector<std::string> left_out;
  for (const LoraTarget& target : context.options.lora) {
    ASSIGN_OR_RETURN(const std::regex regex, ParseRegex(target.regex));
    bool found = false;
    for (Value* weight : graph.Values()) {
      if (weight->kind() != ValueKind::kParameter || weight->type.shape.size() != 2 ||
          !IsFloat(weight->type.dtype) || !std::regex_search(weight->name(), regex)) {
        continue;
      }
      const auto known = [&](const Factors& other) {
        return other.weight == weight || other.a == weight || other.b == weight;
      };
      if (std::any_of(adapted.begin(), adapted.end(), known)) continue;
      std::string why_not;
      if (!CanAdapt(*weight, why_not)) {
        if (!why_not.empty()) left_out.push_back(why_not);
        continue;
      }
      found = true;
      if (weight->type.dtype != DType::kFloat32) {
        return absl::UnimplementedError(absl::StrCat("--lora=", target.regex, ":", target.rank, ": weight '",
                                                     weight->name(), "' is ", ToString(weight->type),
                                                     "; factors are merged into float32 weights only"));
      }
      const int64_t most = std::min(weight->type.shape[0], weight->type.shape[1]);
      if (target.rank > most) {
        return absl::InvalidArgumentError(
            absl::StrCat("--lora=", target.regex, ":", target.rank, ": weight '", weight->name(), "' is ",
                         ToString(weight->type), ", so its rank is at most ", most));
      }
      adapted.push_back(AddFactors(graph, weight, target.rank, context.options.seed));
      const std::vector<Use> uses(weight->uses().begin(), weight->uses().end());
      for (const Use& use : uses) AddProducts(graph, use.node, adapted.back());
    }
    if (!found) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--lora=", target.regex, ":", target.rank, " finds no weight of a MatMul or Gemm",
          left_out.empty() ? "" : absl::StrCat("; not adapted: ", absl::StrJoin(left_out, ", "))));
    }
  }
  if (!left_out.empty()) module.notes.push_back(absl::StrCat("not adapted: ", absl::StrJoin(left_out, ", ")));
  return !context.options.lora.empty();
}

}  // namespace pipec
