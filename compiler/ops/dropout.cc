// Dropout as ONNX has it and as the helper op that draws by sample.
#include "absl/strings/str_cat.h"
#include "compiler/ops/batch_axes.h"
#include "compiler/ops/costs.h"
#include "compiler/ops/families.h"
#include "compiler/ops/infer.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

int DropoutBatchAxis(const Node& node) { return SameBatchAxis(node); }

absl::Status CheckDropout(const NodeSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, 1, 1));
  RETURN_IF_ERROR(CheckFloat(spec, 0));
  const float ratio = spec.attributes.Float("ratio");
  if (!(ratio >= 0 && ratio < 1))
    return BadOperands(spec, absl::StrCat("ratio ", ratio, " is not within [0, 1)"));
  const int64_t rank = TypeOf(spec, 0).shape.size(), axis = spec.attributes.Int("batch_axis", -1);
  if (axis < -1 || axis >= rank)
    return BadOperands(spec, absl::StrCat("batch_axis ", axis, " is not within the rank"));
  if (axis >= 0 && spec.attributes.Has("samples")) {
    const int64_t size = TypeOf(spec, 0).shape[axis], samples = spec.attributes.Int("samples");
    if (samples < 1 || size % samples != 0)
      return BadOperands(
          spec, absl::StrCat("axis ", axis, " of size ", size, " does not hold ", samples, " samples"));
  }
  return absl::OkStatus();
}

InferredTypes InferDropout(const NodeSpec& spec) {
  RETURN_IF_ERROR(CheckDropout(spec));
  RETURN_IF_ERROR(CheckOutputs(spec, 1, 2));
  std::vector<TensorType> types{TypeOf(spec, 0)};
  if (spec.outputs.size() == 2) types.push_back({DType::kBool, TypeOf(spec, 0).shape});
  return types;
}

InferredTypes InferDropoutGrad(const NodeSpec& spec) {
  RETURN_IF_ERROR(CheckDropout(spec));
  RETURN_IF_ERROR(CheckOutputs(spec, 1, 1));
  return std::vector<TensorType>{TypeOf(spec, 0)};
}

// A quarter of a Philox4x32-10 block (ten rounds of two products and four exclusive ors) and a product.
constexpr int kDrawFlops = 16;

const OpInfo kRows[] = {
    {"Dropout", "", PerOutputElement<kDrawFlops>, DropoutBatchAxis},
    {"Dropout", kPipecDomain, PerOutputElement<kDrawFlops>, DropoutBatchAxis, Alias::kInPlace, 0,
     InferDropout},
    {"DropoutGrad", kPipecDomain, PerOutputElement<kDrawFlops>, DropoutBatchAxis, Alias::kInPlace, 0,
     InferDropoutGrad},
};

}  // namespace

absl::Span<const OpInfo> DropoutOps() { return kRows; }

}  // namespace pipec
