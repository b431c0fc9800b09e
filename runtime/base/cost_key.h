// What the time of an instruction depends on, as text: what a profile's entries are found by.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/base/attributes.h"
#include "runtime/base/tensor_type.h"

namespace pipec {

// `Conv[group=1,pads=0:0](float32[8,3,64,64],float32[16,3,3,3],-)->float32[8,16,64,64]`: domain (if not ai.onnx)
// and op, attributes by name, operands, results; - is an absent one, of type kUndefined here. Left out: attributes
// that are numbers of floating point, and those that only name something (a random op's key, a parameter's index,
// the order of a sum): no kernel takes longer for them, and they differ from node to node.
std::string CostKey(absl::string_view domain, absl::string_view op, const Attributes& attributes,
                    absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs);

// What CostKey made, taken apart, to tell how much alike two instructions are. Of any other text some parts are empty.
struct CostKeyParts {
  std::string op_and_dtypes;  // `Conv(float32,float32,-)->float32`
  std::string attributes;     // `[group=1,pads=0:0]`
  std::string ranks;          // `([,,,],[,,,],-)->[,,,]`: equal where dims can be compared one by one
  std::vector<int64_t> dims;  // of all operands, then results
};
CostKeyParts SplitCostKey(absl::string_view key);

}  // namespace pipec
