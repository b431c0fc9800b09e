// ai.pipec::NonMaxSuppression: of the boxes of each class the best that do not overlap a better one too much.
#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/operands/check.h"

namespace pipec::cpu {
namespace {

struct Form {
  int64_t batch, classes, boxes;
  int64_t room;  // rows of the result
  bool centered;
};

struct Box {
  float top, left, bottom, right;
};

// (y1, x1, y2, x2) of any two opposite corners, or (x, y, width, height) around the centre.
Box ReadBox(const float* b, bool centered) {
  if (centered) return {b[1] - b[3] / 2, b[0] - b[2] / 2, b[1] + b[3] / 2, b[0] + b[2] / 2};
  return {std::min(b[0], b[2]), std::min(b[1], b[3]), std::max(b[0], b[2]), std::max(b[1], b[3])};
}

float Area(const Box& box) { return (box.bottom - box.top) * (box.right - box.left); }

// Intersection over union.
float Overlap(const Box& a, const Box& b) {
  const Box both{std::max(a.top, b.top), std::max(a.left, b.left), std::min(a.bottom, b.bottom),
                 std::min(a.right, b.right)};
  if (both.bottom <= both.top || both.right <= both.left) return 0;
  const float area = Area(both), all = Area(a) + Area(b) - area;
  return all <= 0 ? 0 : area / all;
}

struct Limits {
  int64_t most = 0;
  float overlap = 0;
  std::optional<float> score;
};

absl::Status Run(const Form& form, const Limits& limits, const float* boxes, const float* scores, int64_t* y,
                 int64_t* count, int64_t* order) {
  std::fill(y, y + form.room * 3, 0);
  int64_t found = 0;
  for (int64_t b = 0; b < form.batch; ++b) {
    const float* of_batch = boxes + b * form.boxes * 4;
    for (int64_t c = 0; c < form.classes; ++c) {
      const float* score = scores + (b * form.classes + c) * form.boxes;
      std::iota(order, order + form.boxes, 0);
      std::sort(order, order + form.boxes, [score](int64_t i, int64_t j) {
        return score[i] != score[j] ? score[i] > score[j] : i < j;
      });
      const int64_t first = found;
      for (int64_t k = 0; k < form.boxes && found - first < limits.most; ++k) {
        if (limits.score && !(score[order[k]] > *limits.score)) continue;
        const Box box = ReadBox(of_batch + order[k] * 4, form.centered);
        bool alone = true;
        for (int64_t s = first; s < found && alone; ++s) {
          alone = !(Overlap(box, ReadBox(of_batch + y[s * 3 + 2] * 4, form.centered)) > limits.overlap);
        }
        if (!alone) continue;
        if (found == form.room) {
          return absl::InvalidArgumentError(
              absl::StrCat("max_output_boxes_per_class is ", limits.most, ", but output 0 has room for ",
                           form.room, " boxes"));
        }
        y[found * 3] = b;
        y[found * 3 + 1] = c;
        y[found * 3 + 2] = order[k];
        ++found;
      }
    }
  }
  *count = found;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec) {
  RETURN_IF_ERROR(
      CheckOperands(spec, {.min_inputs = 2, .max_inputs = 5, .min_outputs = 2, .max_outputs = 2}));
  const Shape &boxes = spec.inputs[0].type.shape, &scores = spec.inputs[1].type.shape;
  if (boxes.size() != 3 || scores.size() != 3 || boxes[2] != 4) {
    return Invalid(spec, "wanted boxes [B,N,4] and scores [B,C,N]");
  }
  RETURN_IF_ERROR(CheckInputType(spec, 0, DType::kFloat32));
  RETURN_IF_ERROR(CheckInput(spec, 1, {DType::kFloat32, {boxes[0], scores[1], boxes[1]}}));
  if (Has(spec, 2)) RETURN_IF_ERROR(CheckInputElements(spec, 2, DType::kInt64, 1));
  for (int k : {3, 4}) {
    if (Has(spec, k)) RETURN_IF_ERROR(CheckInputElements(spec, k, DType::kFloat32, 1));
  }
  const Shape& y = spec.outputs[0].type.shape;
  const Form form{boxes[0], scores[1], boxes[1], y.empty() ? 0 : y[0],
                  spec.attributes.Int("center_point_box", 0) != 0};
  RETURN_IF_ERROR(CheckOutput(spec, 0, {DType::kInt64, {form.room, 3}}));
  RETURN_IF_ERROR(CheckOutput(spec, 1, {DType::kInt64, {}}));
  const bool has_most = Has(spec, 2), has_overlap = Has(spec, 3), has_score = Has(spec, 4);
  const int64_t workspace = form.boxes * static_cast<int64_t>(sizeof(int64_t));
  return MakeKernel(workspace, [=](const KernelArguments& arguments) {
    Limits limits;
    if (has_most) limits.most = *Input<int64_t>(arguments, 2);
    if (has_overlap) limits.overlap = *Input<float>(arguments, 3);
    if (has_score) limits.score = *Input<float>(arguments, 4);
    return Run(form, limits, Input<float>(arguments, 0), Input<float>(arguments, 1),
               Output<int64_t>(arguments, 0), Output<int64_t>(arguments, 1),
               static_cast<int64_t*>(arguments.workspace));
  });
}

}  // namespace

void RegisterNonMaxSuppressionKernels(KernelRegistry& registry) {
  registry.Add("NonMaxSuppression", kPipecDomain, Prepare);
}

}  // namespace pipec::cpu
