// Softmax, LogSoftmax and Hardmax before opset 13: the axes from `axis` on were one.
//   y = Softmax<axis = 1>(x [2,3,4])  ->  f = Reshape(x, {2,12});  s = Softmax<axis = -1>(f);  y = Reshape(s,
//   {2,3,4})
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/onnx/normalize/rules.h"
#include "compiler/onnx/schema/emit_node.h"
#include "runtime/base/status.h"

namespace pipec {

absl::Status OldSoftmax(PendingNode& node) {
  Value* x = node.spec.inputs[0];
  const absl::Span<const int64_t> shape = x->type.shape;
  const int64_t rank = shape.size();
  const int64_t given = node.spec.attributes.Int("axis", 1);
  const int64_t axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis >= rank) {
    return absl::InvalidArgumentError(
        absl::StrCat("axis ", given, " of ", ToString(x->type), " does not exist"));
  }
  if (std::all_of(shape.begin() + axis + 1, shape.end(), [](int64_t d) { return d == 1; })) {
    node.spec.attributes.Set("axis", axis);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(node.spec.inputs[0],
                   AddReshape(node, "flatten", x,
                              {NumElements(shape.subspan(0, axis)), NumElements(shape.subspan(axis))}));
  node.spec.attributes.Set("axis", int64_t{-1});
  ASSIGN_OR_RETURN(Node * added, EmitNode(node.graph, node.spec));
  ASSIGN_OR_RETURN(Value * result, AddReshape(node, "restore", added->output(0), shape));
  node.results = {result};
  return absl::OkStatus();
}

}  // namespace pipec
