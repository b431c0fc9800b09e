// Helper ops whose results have as many entries as the data say: they have room for the most that there can
// be, and the last result counts.
#include <algorithm>
#include <vector>

#include "compiler/ops/batch_axes.h"
#include "compiler/ops/families.h"
#include "compiler/ops/infer.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

const TensorType kCount{DType::kInt64, {}};

// (x) -> (y, count): a column for every element that is not 0.
InferredTypes InferNonZero(const NodeSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, 1, 1));
  RETURN_IF_ERROR(CheckOutputs(spec, 2, 2));
  const TensorType& x = TypeOf(spec, 0);
  return std::vector<TensorType>{{DType::kInt64, {static_cast<int64_t>(x.shape.size()), x.elements()}},
                                 kCount};
}

// The type of x with `entries` along its axis, flattened if it has none.
absl::StatusOr<TensorType> AlongAxis(const NodeSpec& spec, int64_t& entries) {
  TensorType y = TypeOf(spec, 0);
  if (!spec.attributes.Has("axis")) {
    entries = y.elements();
    y.shape = {entries};
    return y;
  }
  ASSIGN_OR_RETURN(const int64_t axis, CheckedAxis(spec, 0, 0));
  entries = y.shape[axis];
  return y;
}

// (x, condition) -> (y, count)
InferredTypes InferCompress(const NodeSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, 2, 2));
  RETURN_IF_ERROR(CheckOutputs(spec, 2, 2));
  const TensorType& condition = TypeOf(spec, 1);
  if (condition.dtype != DType::kBool || condition.shape.size() != 1) {
    return BadOperands(spec, "condition must be bool with one axis");
  }
  int64_t entries;
  ASSIGN_OR_RETURN(TensorType y, AlongAxis(spec, entries));
  const int64_t axis =
      spec.attributes.Has("axis") ? NormalizeAxis(spec.attributes.Int("axis"), y.shape.size()) : 0;
  y.shape[axis] = std::min(entries, condition.shape[0]);
  return std::vector<TensorType>{y, kCount};
}

// (x) -> (y, indices, inverse_indices, counts, count)
InferredTypes InferUnique(const NodeSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, 1, 1));
  RETURN_IF_ERROR(CheckOutputs(spec, 5, 5));
  int64_t entries;
  ASSIGN_OR_RETURN(TensorType y, AlongAxis(spec, entries));
  const TensorType numbers{DType::kInt64, {entries}};
  return std::vector<TensorType>{y, numbers, numbers, numbers, kCount};
}

// (boxes [B,N,4], scores [B,C,N], max_output_boxes_per_class?, iou_threshold?, score_threshold?) ->
// (selected, count)
InferredTypes InferNonMaxSuppression(const NodeSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, 2, 5));
  RETURN_IF_ERROR(CheckOutputs(spec, 2, 2));
  const Shape &boxes = TypeOf(spec, 0).shape, &scores = TypeOf(spec, 1).shape;
  if (boxes.size() != 3 || scores.size() != 3 || boxes[2] != 4 || boxes[0] != scores[0] ||
      boxes[1] != scores[2]) {
    return BadOperands(spec, "wanted boxes [B,N,4] and scores [B,C,N]");
  }
  int64_t most = boxes[1];
  if (!Present(spec, 2)) {
    most = 0;
  } else if (const auto limit = ConstantInts(spec.inputs[2]); limit && !limit->empty()) {
    most = std::clamp<int64_t>((*limit)[0], 0, most);
  }
  return std::vector<TensorType>{{DType::kInt64, {scores[0] * scores[1] * most, 3}}, kCount};
}

const OpInfo kRows[] = {
    {"NonZero", kPipecDomain, nullptr, NoBatchAxis, Alias::kNone, 0, InferNonZero},
    {"Compress", kPipecDomain, nullptr, NoBatchAxis, Alias::kNone, 0, InferCompress},
    {"Unique", kPipecDomain, nullptr, NoBatchAxis, Alias::kNone, 0, InferUnique},
    {"NonMaxSuppression", kPipecDomain, nullptr, NoBatchAxis, Alias::kNone, 0, InferNonMaxSuppression},
};

}  // namespace

absl::Span<const OpInfo> SizedByDataOps() { return kRows; }

}  // namespace pipec
