// Softmax, layer and batch normalization and their gradients.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/ops/batch_axes.h"
#include "compiler/ops/casts.h"
#include "compiler/ops/costs.h"
#include "compiler/ops/families.h"
#include "compiler/ops/infer.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

int SoftmaxBatchAxis(const Node& node) {
  const int axis = SameBatchAxis(node);
  const int64_t rank = node.input(0)->type.shape.size();
  return axis == NormalizeAxis(node.attributes.Int("axis", -1), rank) ? -1 : axis;
}

// Normalises over all axes from `axis` on.
int LayerNormalizationBatchAxis(const Node& node) {
  const int axis = SameBatchAxis(node);
  const int64_t rank = node.input(0)->type.shape.size();
  return axis < NormalizeAxis(node.attributes.Int("axis", -1), rank) ? axis : -1;
}

InferredTypes InferSoftmaxGrad(const NodeSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, 2, 2));
  RETURN_IF_ERROR(CheckOutputs(spec, 1, 1));
  RETURN_IF_ERROR(CheckFloat(spec, 0));
  RETURN_IF_ERROR(CheckSameType(spec, 0, 1));
  RETURN_IF_ERROR(CheckedAxis(spec, 0, -1).status());
  return std::vector<TensorType>{TypeOf(spec, 0)};
}

// dY and X (operands 0 and 1) alike; mean and inv_std_dev (from `first` on) have X's shape with 1 from `axis`
// on.
absl::StatusOr<int64_t> CheckLayerNormalization(const NodeSpec& spec, int first) {
  RETURN_IF_ERROR(CheckFloat(spec, 0));
  RETURN_IF_ERROR(CheckSameType(spec, 0, 1));
  ASSIGN_OR_RETURN(int64_t axis, CheckedAxis(spec, 1, -1));
  Shape statistics = TypeOf(spec, 1).shape;
  for (size_t i = axis; i < statistics.size(); ++i) statistics[i] = 1;
  for (int k : {first, first + 1}) {
    if (TypeOf(spec, k).shape != statistics || !IsFloat(TypeOf(spec, k).dtype)) {
      return BadOperands(
          spec, absl::StrCat("operand ", k, " must be of a float type and shape ", ToString(statistics)));
    }
  }
  return axis;
}

// (X, scale, bias?) -> (Y, mean?, inv_std_dev?)
InferredTypes InferLayerNormalization(const NodeSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, 2, 3));
  RETURN_IF_ERROR(CheckOutputs(spec, 1, 3));
  RETURN_IF_ERROR(CheckFloat(spec, 0));
  ASSIGN_OR_RETURN(int64_t axis, CheckedAxis(spec, 0, -1));
  const TensorType& x = TypeOf(spec, 0);
  const TensorType scale{x.dtype, Shape(x.shape.begin() + axis, x.shape.end())};
  for (int k = 1; k < 3; ++k) {
    if (Present(spec, k) && TypeOf(spec, k) != scale)
      return BadOperands(spec, absl::StrCat("operand ", k, " must be ", ToString(scale)));
  }
  TensorType statistics{DType::kFloat32, x.shape};
  std::fill(statistics.shape.begin() + axis, statistics.shape.end(), 1);
  std::vector<TensorType> types{x, statistics, statistics};
  types.resize(spec.outputs.size());
  return types;
}

InferredTypes InferLayerNormalizationInputGrad(const NodeSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, 5, 5));
  RETURN_IF_ERROR(CheckOutputs(spec, 1, 1));
  ASSIGN_OR_RETURN(int64_t axis, CheckLayerNormalization(spec, 3));
  const TensorType& x = TypeOf(spec, 1);
  const TensorType scale{x.dtype, Shape(x.shape.begin() + axis, x.shape.end())};
  if (TypeOf(spec, 2) != scale) return BadOperands(spec, absl::StrCat("scale must be ", ToString(scale)));
  return std::vector<TensorType>{TypeOf(spec, 1)};
}

InferredTypes InferLayerNormalizationWeightGrad(const NodeSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, 4, 4));
  RETURN_IF_ERROR(CheckOutputs(spec, 1, 2));
  ASSIGN_OR_RETURN(int64_t axis, CheckLayerNormalization(spec, 2));
  const TensorType& x = TypeOf(spec, 1);
  const TensorType result{x.dtype, Shape(x.shape.begin() + axis, x.shape.end())};
  return std::vector<TensorType>(spec.outputs.size(), result);
}

// In training the statistics are the microbatch's; the samples stay where they are.
int BatchNormalizationBatchAxis(const Node& node) { return LeadingBatchAxis(node, {0, 1}); }

// Operand k is a vector of X's channels, in X's element type; X is operand `x`.
absl::Status CheckChannels(const NodeSpec& spec, int x, int first, int end) {
  const TensorType& type = TypeOf(spec, x);
  const TensorType channels{type.dtype, {type.shape.size() > 1 ? type.shape[1] : 1}};
  for (int k = first; k < end; ++k) {
    if (TypeOf(spec, k) != channels)
      return BadOperands(spec, absl::StrCat("operand ", k, " must be ", ToString(channels)));
  }
  return absl::OkStatus();
}

InferredTypes InferTrainingBatchNormalization(const NodeSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, 5, 5));
  RETURN_IF_ERROR(CheckOutputs(spec, 3, 3));
  RETURN_IF_ERROR(CheckFloat(spec, 0));
  RETURN_IF_ERROR(CheckChannels(spec, 0, 1, 5));
  return std::vector<TensorType>{TypeOf(spec, 0), TypeOf(spec, 1), TypeOf(spec, 1)};
}

InferredTypes InferBatchNormalizationInputGrad(const NodeSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, 5, 5));
  RETURN_IF_ERROR(CheckOutputs(spec, 1, 1));
  RETURN_IF_ERROR(CheckFloat(spec, 0));
  RETURN_IF_ERROR(CheckSameType(spec, 0, 1));
  RETURN_IF_ERROR(CheckChannels(spec, 1, 2, 5));
  return std::vector<TensorType>{TypeOf(spec, 1)};
}

InferredTypes InferBatchNormalizationWeightGrad(const NodeSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, 4, 4));
  RETURN_IF_ERROR(CheckOutputs(spec, 1, 2));
  RETURN_IF_ERROR(CheckFloat(spec, 0));
  RETURN_IF_ERROR(CheckSameType(spec, 0, 1));
  RETURN_IF_ERROR(CheckChannels(spec, 1, 2, 4));
  return std::vector<TensorType>(spec.outputs.size(), TypeOf(spec, 2));
}

InferredTypes InferRunningAverage(const NodeSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, 2, 2));
  RETURN_IF_ERROR(CheckOutputs(spec, 1, 1));
  RETURN_IF_ERROR(CheckFloat(spec, 0));
  RETURN_IF_ERROR(CheckSameType(spec, 0, 1));
  return std::vector<TensorType>{TypeOf(spec, 0)};
}

const OpInfo kRows[] = {
    {"Softmax", "", PerOutputElement<5>, SoftmaxBatchAxis},
    {"LogSoftmax", "", PerOutputElement<5>, SoftmaxBatchAxis},
    {"LayerNormalization", "", PerOutputElement<8>, LayerNormalizationBatchAxis},
    {"BatchNormalization", "", PerOutputElement<2>},
    {"InstanceNormalization", "", PerOutputElement<8>},
    {"LpNormalization", "", PerOutputElement<3>},
    {"LRN", "", PerOutputElement<20>},
    {"SoftmaxGrad", kPipecDomain, PerOutputElement<4>, SoftmaxBatchAxis, Alias::kNone, 0, InferSoftmaxGrad},
    {"LogSoftmaxGrad", kPipecDomain, PerOutputElement<4>, SoftmaxBatchAxis, Alias::kNone, 0,
     InferSoftmaxGrad},
    {"LayerNormalization", kPipecDomain, PerOutputElement<8>, LayerNormalizationBatchAxis, Alias::kNone, 0,
     BetweenCasts<InferLayerNormalization>},
    {"LayerNormalizationInputGrad", kPipecDomain, PerInputElement<12>, LayerNormalizationBatchAxis,
     Alias::kNone, 0, BetweenCasts<InferLayerNormalizationInputGrad>},
    {"LayerNormalizationWeightGrad", kPipecDomain, PerInputElement<5>, NoBatchAxis, Alias::kNone, 0,
     BetweenCasts<InferLayerNormalizationWeightGrad>},
    {"TrainingBatchNormalization", kPipecDomain, PerInputElement<7>, BatchNormalizationBatchAxis,
     Alias::kNone, 0, BetweenCasts<InferTrainingBatchNormalization>},
    {"BatchNormalizationInputGrad", kPipecDomain, PerInputElement<9>, BatchNormalizationBatchAxis,
     Alias::kNone, 0, BetweenCasts<InferBatchNormalizationInputGrad>},
    {"BatchNormalizationWeightGrad", kPipecDomain, PerInputElement<5>, NoBatchAxis, Alias::kNone, 0,
     BetweenCasts<InferBatchNormalizationWeightGrad>},
    {"RunningAverage", kPipecDomain, PerInputElement<3>, NoBatchAxis, Alias::kSameMemory, 0,
     InferRunningAverage},
};

}  // namespace

absl::Span<const OpInfo> NormalizationOps() { return kRows; }

}  // namespace pipec
