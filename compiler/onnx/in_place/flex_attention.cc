// Attention with subgraphs that change the scores and the probabilities: they stand where the schema's
// function body has them, written in the opsets of the graph around and free to use its values, as bodies of
// loops are.
//
//   y = FlexAttention<score_mod, prob_mod>(q, k, v)  ->  s = (q r) (k r)^T;  p = Softmax(score_mod(s))
//                                                        y = prob_mod(p) v
//
// with r the root of the scale. q [B,Hq,L,E], k [B,Hk,S,E], v [B,Hk,S,Ev]; a head of k and v serves Hq / Hk
// heads of q in a row.
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/onnx/in_place/in_place.h"
#include "compiler/onnx/schema/emit_node.h"
#include "runtime/base/counted.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

class FlexAttention {
 public:
  FlexAttention(const InPlaceNode& node, InPlaceImporter& importer) : node_(node), importer_(importer) {}

  absl::StatusOr<std::vector<Meaning>> Import() {
    ASSIGN_OR_RETURN(Value * q, TensorOf(node_.operand(0)));
    ASSIGN_OR_RETURN(Value * k, TensorOf(node_.operand(1)));
    ASSIGN_OR_RETURN(Value * v, TensorOf(node_.operand(2)));
    RETURN_IF_ERROR(CheckShapes(q->type, k->type, v->type));
    const DType dtype = q->type.dtype, between = SoftmaxType(dtype);
    ASSIGN_OR_RETURN(k, RepeatHeads(k, q->type.shape[1], "keys"));
    ASSIGN_OR_RETURN(v, RepeatHeads(v, q->type.shape[1], "values"));
    ASSIGN_OR_RETURN(Value * root, RootOfScale(q->type));
    ASSIGN_OR_RETURN(q, Emit("Mul", "q", {q, root}));
    ASSIGN_OR_RETURN(k, Emit("Mul", "k", {k, root}));
    ASSIGN_OR_RETURN(k, Emit("Transpose", "k^T", {k}, "perm", std::vector<int64_t>{0, 1, 3, 2}));
    ASSIGN_OR_RETURN(Value * scores, Emit("MatMul", "scores", {q, k}));
    ASSIGN_OR_RETURN(scores, Cast(scores, between));
    ASSIGN_OR_RETURN(scores, Modify("score_mod", scores));
    ASSIGN_OR_RETURN(Value * probabilities, Emit("Softmax", "probabilities", {scores}, "axis", int64_t{-1}));
    ASSIGN_OR_RETURN(probabilities, Modify("prob_mod", probabilities));
    ASSIGN_OR_RETURN(probabilities, Cast(probabilities, dtype));
    ASSIGN_OR_RETURN(Value * y, Emit("MatMul", "y", {probabilities, v}));
    return std::vector<Meaning>{y};
  }

 private:
  static absl::Status CheckShapes(const TensorType& q, const TensorType& k, const TensorType& v) {
    const bool fits = q.dtype == k.dtype && q.dtype == v.dtype && q.shape.size() == 4 &&
                      k.shape.size() == 4 && v.shape.size() == 4 && q.shape[0] == k.shape[0] &&
                      q.shape[3] == k.shape[3] && k.shape[0] == v.shape[0] && k.shape[1] == v.shape[1] &&
                      k.shape[2] == v.shape[2] && k.shape[1] > 0 && q.shape[1] % k.shape[1] == 0;
    if (fits) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("Q ", ToString(q), ", K ", ToString(k), ", V ", ToString(v),
                     " do not fit: wanted [B,Hq,L,E], [B,Hk,S,E], [B,Hk,S,Ev] of one type, Hq a "
                     "multiple of Hk"));
  }

  DType SoftmaxType(DType dtype) const {
    const DType standard = dtype == DType::kFloat64 ? dtype : DType::kFloat32;
    return static_cast<DType>(node_.attributes.Int("softmax_precision", static_cast<int64_t>(standard)));
  }

  absl::StatusOr<Value*> Emit(absl::string_view op, absl::string_view part, std::vector<Value*> inputs,
                              absl::string_view attribute = "", Attribute value = {}) {
    NodeSpec spec{
        .op = std::string(op), .name = absl::StrCat(node_.name, "/", part), .inputs = std::move(inputs)};
    if (!attribute.empty()) spec.attributes.Set(attribute, std::move(value));
    ASSIGN_OR_RETURN(const std::vector<Value*> results, importer_.Emit(std::move(spec)));
    return results[0];
  }

  absl::StatusOr<Value*> Cast(Value* x, DType dtype) {
    if (x->type.dtype == dtype) return x;
    return Emit("Cast", "cast", {x}, "to", static_cast<int64_t>(dtype));
  }

  // x [B,Hk,S,E] with every head as often in a row as makes `heads` of them.
  absl::StatusOr<Value*> RepeatHeads(Value* x, int64_t heads, absl::string_view part) {
    const Shape shape = x->type.shape;
    if (shape[1] == heads) return x;
    const auto ints = [&](absl::Span<const int64_t> values) {
      return AddInts(importer_.graph(), absl::StrCat(node_.name, "/", part, "/ints"), values);
    };
    ASSIGN_OR_RETURN(x, Emit("Unsqueeze", part, {x, ints({2})}));
    ASSIGN_OR_RETURN(x, Emit("Expand", part, {x, ints({1, 1, heads / shape[1], 1, 1})}));
    return Emit("Reshape", part, {x, ints({0, heads, shape[2], shape[3]})});
  }

  absl::StatusOr<Value*> RootOfScale(const TensorType& q) {
    const float head_size = static_cast<float>(q.shape[3]);
    const float scale = node_.attributes.Float("scale", 1 / std::sqrt(head_size));
    return Cast(AddFloat(importer_.graph(), absl::StrCat(node_.name, "/scale"), std::sqrt(scale)), q.dtype);
  }

  // What the subgraph makes of x; x if the node has none.
  absl::StatusOr<Value*> Modify(absl::string_view attribute, Value* x) {
    if (!node_.HasBody(attribute)) return x;
    ASSIGN_OR_RETURN(const onnx::GraphProto* body, node_.Body(attribute));
    ASSIGN_OR_RETURN(const std::vector<Meaning> results,
                     importer_.ImportBody(*body, absl::StrCat(node_.name, "/", attribute, "/"), {x}));
    if (results.size() != 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "its ", attribute, " has ", Counted(results.size(), "output", "outputs"), ", wanted one"));
    }
    ASSIGN_OR_RETURN(Value * y, TensorOf(results[0]));
    if (y->type == x->type) return y;
    return absl::InvalidArgumentError(absl::StrCat("its ", attribute, " makes ", ToString(y->type), " of ",
                                                   ToString(x->type), ", wanted the same type"));
  }

  const InPlaceNode& node_;
  InPlaceImporter& importer_;
};

absl::StatusOr<std::vector<Meaning>> ImportFlexAttention(const InPlaceNode& node, InPlaceImporter& importer) {
  return FlexAttention(node, importer).Import();
}

constexpr InPlaceOp kOps[] = {{"FlexAttention", ImportFlexAttention, "ai.onnx.preview"}};

}  // namespace

absl::Span<const InPlaceOp> AttentionOps() { return kOps; }

}  // namespace pipec
