// Ops on images.
//   Upsample<scales = [1,1,2,2]>(x)        ->  Resize<asymmetric, floor>(x, , scales)
//   Resize(x, scales) of opset 10          ->  the same; nearest and smaller: ceil instead of floor
//   Resize(x, {}, {}, sizes)               ->  Resize(x, , , sizes): empty operands are absent ones
//   RoiAlign(x, rois, indices)             ->  RoiAlign<output_half_pixel>(...)
//   GridSample<mode = "bilinear">(x, grid) ->  GridSample<mode = "linear">(x, grid)
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/onnx/normalize/rules.h"
#include "compiler/onnx/schema/emit_node.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

// An operand that says how much: a float tensor that no training may change, although initializers of floats
// are parameters elsewhere.
Value* AsConstant(PendingNode& node, Value* value) {
  if (value->kind() != ValueKind::kParameter || !value->data.bytes) return value;
  return node.graph.AddConstant(value->name(), value->type, *value->data.bytes);
}

Value* AddScales(PendingNode& node, absl::string_view part, const std::vector<float>& scales) {
  std::string bytes(scales.size() * sizeof(float), '\0');
  if (!scales.empty()) std::memcpy(bytes.data(), scales.data(), bytes.size());
  return node.graph.AddConstant(NameOf(node, part), {DType::kFloat32, {static_cast<int64_t>(scales.size())}},
                                std::move(bytes));
}

// Resize in the coordinates that it had before opset 11.
NodeSpec ResizeBy(const PendingNode& node, Value* x, Value* scales, absl::string_view nearest_mode) {
  NodeSpec spec{.op = "Resize", .name = node.spec.name, .inputs = {x, nullptr, scales}};
  spec.attributes.Set("mode", node.spec.attributes.String("mode", "nearest"));
  spec.attributes.Set("coordinate_transformation_mode", std::string("asymmetric"));
  spec.attributes.Set("nearest_mode", std::string(nearest_mode));
  return spec;
}

}  // namespace

absl::Status OldUpsample(PendingNode& node) {
  if (node.spec.attributes.Has("scales")) {
    SetOperand(node, 1, AddScales(node, "scales", node.spec.attributes.Floats("scales")));
  }
  if (node.spec.inputs.size() < 2) return NoCounterpart(node, "Upsample without scales");
  node.spec = ResizeBy(node, node.spec.inputs[0], AsConstant(node, node.spec.inputs[1]), "floor");
  return absl::OkStatus();
}

// ONNX left open which neighbour is nearest. Where an axis shrinks it was the one above (its own node test of
// that opset, and onnxruntime, say so), and axes are independent of each other.
absl::Status OldResize(PendingNode& node) {
  Value* const x = node.spec.inputs[0];
  Value* const scales = AsConstant(node, node.spec.inputs[1]);
  if (node.spec.attributes.String("mode", "nearest") != "nearest") {
    node.spec = ResizeBy(node, x, scales, "floor");
    return absl::OkStatus();
  }
  if (scales->kind() != ValueKind::kConstant || !scales->data.bytes ||
      scales->type.dtype != DType::kFloat32) {
    return NoCounterpart(node, "Resize to nearest by scales that are not constant");
  }
  std::vector<float> grow(scales->type.elements()), shrink(grow.size());
  std::memcpy(grow.data(), scales->data.bytes->data(), grow.size() * sizeof(float));
  for (int i = 0; i < grow.size(); ++i) {
    shrink[i] = std::min(grow[i], 1.0f);
    grow[i] = std::max(grow[i], 1.0f);
  }
  const auto changes = [](const std::vector<float>& s) {
    return std::any_of(s.begin(), s.end(), [](float f) { return f != 1; });
  };
  if (!changes(shrink)) {
    node.spec = ResizeBy(node, x, scales, "floor");
    return absl::OkStatus();
  }
  Value* grown = x;
  if (changes(grow)) {
    NodeSpec first = ResizeBy(node, x, AddScales(node, "grow/scales", grow), "floor");
    first.name = "grow";
    ASSIGN_OR_RETURN(grown, AddBefore(node, std::move(first)));
  }
  node.spec = ResizeBy(node, grown, AddScales(node, "shrink/scales", shrink), "ceil");
  return absl::OkStatus();
}

// Opset 11 asked for empty tensors where an operand is not given, and exporters still write them.
absl::Status ResizeOperands(PendingNode& node) {
  if (node.spec.attributes.String("coordinate_transformation_mode", "") == "tf_half_pixel_for_nn") {
    return NoCounterpart(node, "Resize with coordinate_transformation_mode tf_half_pixel_for_nn");
  }
  std::vector<Value*>& inputs = node.spec.inputs;
  for (int i = 1; i < inputs.size(); ++i) {
    if (!inputs[i]) continue;
    inputs[i] = inputs[i]->type.elements() == 0 ? nullptr : AsConstant(node, inputs[i]);
  }
  while (!inputs.empty() && !inputs.back()) inputs.pop_back();
  return absl::OkStatus();
}

// Opset 16 brought the attribute, with another default than what had been.
absl::Status OldRoiAlign(PendingNode& node) {
  node.spec.attributes.Set("coordinate_transformation_mode", std::string("output_half_pixel"));
  return absl::OkStatus();
}

absl::Status OldGridSample(PendingNode& node) {
  const std::string mode = node.spec.attributes.String("mode", "bilinear");
  node.spec.attributes.Set("mode", mode == "bilinear" ? "linear" : mode == "bicubic" ? "cubic" : mode);
  return absl::OkStatus();
}

}  // namespace pipec
