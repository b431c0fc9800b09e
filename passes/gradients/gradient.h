// Gradient rules: how to differentiate one forward node. One file per op family; each registers its rules.
//
// A rule gets the node and the gradients of its outputs (null: zero) and returns the gradient of each input
// it is asked for (null: zero, or not differentiable). It emits backward nodes through the builder, which
// appends them with origin = the forward node. A contribution has exactly the type of its input: sum over
// broadcast axes (SumToShape). Each input's gradient is made by nodes of its own as far as that costs
// nothing, so that the split into I and W (split_backward) is clean.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/graph.h"

namespace pipec {

// Appends backward nodes and infers their types.
class GradientBuilder {
 public:
  GradientBuilder(Graph& graph, Node* forward) : graph_(graph), forward_(forward) {}

  Node* forward() const { return forward_; }
  Value* input(int i) const { return forward_->input(i); }
  Value* output(int i) const { return forward_->output(i); }
  // Output i of the forward node, which is made to compute it if nobody asked for it so far.
  Value* RequireOutput(int i);

  // One node with one output; ONNX ops in their newest form (domain ""), helper ops with domain kPipecDomain.
  // The type of the output comes from the op's schema (or the op table). A failure is remembered and returned
  // by status().
  Value* Emit(absl::string_view op, std::vector<Value*> inputs, Attributes attributes = {},
              absl::string_view domain = "");
  // The same with `outputs` outputs. After a failure, and if an operand is null because of one: nulls.
  std::vector<Value*> EmitAll(absl::string_view op, std::vector<Value*> inputs, Attributes attributes,
                              absl::string_view domain, int outputs);

  // Zeros, made when they are needed: a constant would take as much room in every plan.
  Value* Zeros(const TensorType& type);
  // `value` under another shape of as many elements.
  Value* Reshape(Value* value, absl::Span<const int64_t> shape);

  // Constants, shared within the graph.
  Value* Scalar(DType dtype, double value);       // shape []
  Value* Int(int64_t value);                      // int64 []
  Value* Ints(absl::Span<const int64_t> values);  // int64 [n]
  Value* Floats(absl::Span<const float> values);  // float32 [n]

  // Sums `gradient` over the axes along which a tensor of shape `shape` was broadcast; result has exactly
  // `shape`.
  Value* SumToShape(Value* gradient, absl::Span<const int64_t> shape);
  // The constant contents of an operand of int64 or int32; fails if it is not constant.
  std::vector<int64_t> ConstantInts(Value* value);

  void Fail(absl::Status status) {
    if (status_.ok()) status_ = std::move(status);
  }
  const absl::Status& status() const { return status_; }

 private:
  Graph& graph_;
  Node* forward_;
  absl::Status status_;
};

// `output_gradients[k]` is null where no gradient reaches output k; at least one is not null. `wanted[i]`:
// the gradient of input i is needed. Returns one entry per input.
using GradientRule = std::vector<Value*> (*)(GradientBuilder& builder,
                                             absl::Span<Value* const> output_gradients,
                                             const std::vector<bool>& wanted);

// Null if there is no rule.
GradientRule FindGradientRule(absl::string_view op, absl::string_view domain);

// Whether it is known that no gradient flows through this op: its outputs are integers or bools, or do not
// change when its inputs change a little (Floor). Not the same as a rule that is missing.
bool NoGradientFlows(absl::string_view op, absl::string_view domain);

// How a gradient passes through an op: by its rule, or by the rules of what stands in its place (its schema's
// function, a newer op, the values that control flow chooses), each of which is known; or not at all.
enum class GradientKind { kNone, kRule, kFunction };
GradientKind GradientKindOf(absl::string_view op, absl::string_view domain);

struct GradientRuleEntry {
  absl::string_view op;
  absl::string_view domain;
  GradientRule rule;
};
// All rules, family by family.
absl::Span<const GradientRuleEntry> AllGradientRules();

}  // namespace pipec
