#include "passes/gradients/differentiate.h"

#include "absl/strings/str_cat.h"

namespace pipec {
namespace {

// "node 'a' (Atan), opset 17": the opset that the model was written in.
std::string Describe(const Module& module, const Node& node) {
  const bool onnx = node.domain().empty();
  return absl::StrCat("node '", node.name(), "' (", onnx ? "" : absl::StrCat(node.domain(), "::"), node.op(),
                      ")", onnx && module.opset > 0 ? absl::StrCat(", opset ", module.opset) : "");
}

}  // namespace

absl::StatusOr<std::vector<Value*>> DifferentiateNode(const Module& module, GradientBuilder& builder,
                                                      absl::Span<Value* const> output_gradients,
                                                      const std::vector<bool>& wanted) {
  const Node& node = *builder.forward();
  const GradientRule rule = FindGradientRule(node.op(), node.domain());
  if (!rule) {
    return absl::UnimplementedError(
        absl::StrCat(Describe(module, node),
                     ": there is no gradient rule for this op, but the loss depends on a trained parameter "
                     "through it; --freeze the parameters before it, or see pipec --list-ops"));
  }
  std::vector<Value*> contributions = rule(builder, output_gradients, wanted);
  if (!builder.status().ok()) {
    return absl::Status(builder.status().code(), absl::StrCat("gradient of ", Describe(module, node), ": ",
                                                              builder.status().message()));
  }
  for (size_t i = 0; i < contributions.size(); ++i) {
    if (!wanted[i]) contributions[i] = nullptr;
    const Value* operand = node.input(static_cast<int>(i));
    if (contributions[i] && contributions[i]->type != operand->type) {
      return absl::InternalError(absl::StrCat("the gradient rule of ", node.op(), " gave ",
                                              ToString(contributions[i]->type), " for input ", i, " of node ",
                                              node.name(), ", wanted ", ToString(operand->type)));
    }
  }
  return contributions;
}

}  // namespace pipec
