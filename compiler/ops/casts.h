// Ops that compute in float32 and, where their attribute `to` says so, read 16-bit floats and write result 0 in
// another type themselves, as if casts stood around them: runtime/device/ops.def, CASTS. Pass fuse-casts makes them so.
#pragma once

#include "absl/strings/string_view.h"
#include "compiler/ops/infer.h"

namespace pipec {

// On a node of such an op: the type of result 0.
inline constexpr absl::string_view kCastTo = "to";

struct OwnCasts {
  int first, last;  // these operands may be of 16-bit floats
  bool result;      // result 0, too
};

// Of the helper op of this name, whose ONNX op, if there is one, means the same without `to`; null if there is none.
const OwnCasts* OwnCastsOf(absl::string_view op, absl::string_view domain);

// The type rule of such an op: `infer`, which is the rule between the casts.
InferredTypes InferBetweenCasts(const NodeSpec& spec, InferredTypes (*infer)(const NodeSpec& spec));
template <InferredTypes (*infer)(const NodeSpec& spec)>
InferredTypes BetweenCasts(const NodeSpec& spec) {
  return InferBetweenCasts(spec, infer);
}

}  // namespace pipec
