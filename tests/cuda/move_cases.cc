#include "tests/cuda/move_cases.h"

#include <algorithm>

#include "tests/cuda/draw.h"

namespace pipec {
namespace {

// An operand of any type and of rank `least` or more.
TensorType AddAny(KernelCase& c, Random& random, size_t least = 0) {
  TensorType type{AnyType(random), AnyShape(random)};
  while (type.shape.size() < least) type.shape.push_back(Draw(random, 1, 9));
  AddInput(c, type, random);
  return type;
}

KernelCase Transpose(Random& random) {
  KernelCase c = Named("", "Transpose");
  const TensorType type = AddAny(c, random);
  std::vector<int64_t> perm(type.shape.size());
  for (size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<int64_t>(i);
  std::shuffle(perm.begin(), perm.end(), random);
  if (Draw(random, 0, 3) == 0) {
    std::sort(perm.begin(), perm.end(), std::greater<>());
  } else {
    c.spec.attributes.Set("perm", perm);
  }
  Shape shape;
  for (int64_t axis : perm) shape.push_back(type.shape[axis]);
  c.spec.outputs.push_back({{type.dtype, shape}});
  return c;
}

KernelCase Expand(Random& random) {
  KernelCase c = Named("", "Expand");
  const Shape shape = AnyShape(random);
  const TensorType type{AnyType(random), Narrowed(shape, random)};
  AddInput(c, type, random);
  AddConstant(c, {shape.begin(), shape.end()});
  c.spec.outputs.push_back({{type.dtype, shape}});
  return c;
}

KernelCase Tile(Random& random) {
  KernelCase c = Named("", "Tile");
  const TensorType type = AddAny(c, random);
  Shape shape = type.shape;
  std::vector<int64_t> repeats;
  for (int64_t& dim : shape) {
    repeats.push_back(Draw(random, 1, 3));
    dim *= repeats.back();
  }
  AddConstant(c, repeats);
  c.spec.outputs.push_back({{type.dtype, shape}});
  return c;
}

MakeCase Blocks(const std::string& op) {
  return [=](Random& random) {
    KernelCase c = Named("", op);
    const int64_t side = Draw(random, 1, 3), n = Draw(random, 1, 2), channels = Draw(random, 1, 3),
                  h = Draw(random, 1, 5), w = Draw(random, 1, 5);
    const Shape deep{n, channels * side * side, h, w}, fine{n, channels, h * side, w * side};
    const DType dtype = AnyType(random);
    c.spec.attributes.Set("blocksize", side);
    if (op == "DepthToSpace" && Draw(random, 0, 1)) c.spec.attributes.Set("mode", std::string("CRD"));
    AddInput(c, {dtype, op == "DepthToSpace" ? deep : fine}, random);
    c.spec.outputs.push_back({{dtype, op == "DepthToSpace" ? fine : deep}});
    return c;
  };
}

// Where a slice lies: every axis, or some.
struct Bounds {
  std::vector<int64_t> starts, ends, axes, steps;
  Shape shape;
};
Bounds DrawBounds(const Shape& shape, Random& random) {
  Bounds bounds{.shape = shape};
  for (size_t i = 0; i < shape.size(); ++i) {
    if (Draw(random, 0, 2) == 0 || shape[i] == 0) continue;
    const int64_t step = Draw(random, 0, 2) ? 1 : (Draw(random, 0, 1) ? 2 : -Draw(random, 1, 2));
    const int64_t a = Draw(random, 0, shape[i] - 1), b = Draw(random, 0, shape[i] - 1);
    const int64_t low = std::min(a, b), high = std::max(a, b);
    bounds.axes.push_back(static_cast<int64_t>(i));
    bounds.steps.push_back(step);
    bounds.starts.push_back(step > 0 ? low : high);
    bounds.ends.push_back(step > 0 ? high + 1 : (low == 0 ? -1000 : low - 1));
    bounds.shape[i] = (high - low) / std::abs(step) + 1;
  }
  return bounds;
}

KernelCase Slice(Random& random) {
  KernelCase c = Named("", "Slice");
  const TensorType type = AddAny(c, random);
  const Bounds bounds = DrawBounds(type.shape, random);
  AddConstant(c, bounds.starts);
  AddConstant(c, bounds.ends);
  AddConstant(c, bounds.axes);
  AddConstant(c, bounds.steps);
  c.spec.outputs.push_back({{type.dtype, bounds.shape}});
  return c;
}

KernelCase SliceGrad(Random& random) {
  KernelCase c = Named("ai.pipec", "SliceGrad");
  const TensorType type{AnyFloat(random), AnyShape(random)};
  const Bounds bounds = DrawBounds(type.shape, random);
  AddInput(c, {type.dtype, bounds.shape}, random);
  c.spec.attributes.Set("shape", std::vector<int64_t>(type.shape.begin(), type.shape.end()));
  c.spec.attributes.Set("starts", bounds.starts);
  c.spec.attributes.Set("axes", bounds.axes);
  c.spec.attributes.Set("steps", bounds.steps);
  c.spec.outputs.push_back({type});
  return c;
}

KernelCase Concat(Random& random) {
  KernelCase c = Named("", "Concat");
  const TensorType first = AddAny(c, random, 1);
  const auto rank = static_cast<int64_t>(first.shape.size());
  const int64_t axis = Draw(random, 0, rank - 1);
  c.spec.attributes.Set("axis", Draw(random, 0, 1) ? axis : axis - rank);
  TensorType whole = first;
  for (int64_t more = Draw(random, 0, 3); more > 0; --more) {
    TensorType own = first;
    own.shape[axis] = Draw(random, 0, 9);
    AddInput(c, own, random);
    whole.shape[axis] += own.shape[axis];
  }
  c.spec.outputs.push_back({whole});
  return c;
}

KernelCase Split(Random& random) {
  KernelCase c = Named("", "Split");
  TensorType type{AnyType(random), AnyShape(random)};
  if (type.shape.empty()) type.shape = {4};
  const int64_t axis = Draw(random, 0, static_cast<int64_t>(type.shape.size()) - 1);
  std::vector<int64_t> sizes;
  type.shape[axis] = 0;
  for (int64_t pieces = Draw(random, 1, 4); pieces > 0; --pieces) {
    sizes.push_back(Draw(random, 0, 8));
    type.shape[axis] += sizes.back();
  }
  AddInput(c, type, random);
  AddConstant(c, sizes);
  c.spec.attributes.Set("axis", axis);
  for (int64_t size : sizes) {
    TensorType own = type;
    own.shape[axis] = size;
    c.spec.outputs.push_back({own});
  }
  if (sizes.size() > 1) c.spec.outputs[0].present = Draw(random, 0, 1) != 0;
  return c;
}

// The same elements in another shape.
KernelCase View(const std::string& op, const Shape& shape, Random& random) {
  KernelCase c = Named("", op);
  const TensorType type = AddAny(c, random);
  c.spec.outputs.push_back({{type.dtype, shape.empty() ? type.shape : shape}});
  if (Draw(random, 0, 1)) c.in_place = {0};
  return c;
}

KernelCase Identity(Random& random) { return View("Identity", {}, random); }

KernelCase Flatten(Random& random) {
  KernelCase c = View("Flatten", {}, random);
  Shape& shape = c.spec.outputs[0].type.shape;
  const int64_t axis = Draw(random, 0, static_cast<int64_t>(shape.size()));
  c.spec.attributes.Set("axis", axis);
  const auto span = absl::MakeSpan(shape);
  shape = {NumElements(span.first(axis)), NumElements(span.subspan(axis))};
  return c;
}

KernelCase Reshape(Random& random) {
  KernelCase c = View("Reshape", {}, random);
  c.spec.outputs[0].type.shape = {c.spec.inputs[0].type.elements(), 1};
  AddConstant(c, {-1, 1});
  return c;
}

KernelCase Squeeze(Random& random) {
  KernelCase c = View("Squeeze", {}, random);
  c.spec.inputs[0].type.shape.insert(c.spec.inputs[0].type.shape.begin(), 1);
  AddConstant(c, {0});
  return c;
}

KernelCase Unsqueeze(Random& random) {
  KernelCase c = View("Unsqueeze", {}, random);
  c.spec.outputs[0].type.shape.push_back(1);
  AddConstant(c, {-1});
  return c;
}

}  // namespace

void AddMoveCases(std::map<std::pair<std::string, std::string>, MakeCase>& cases) {
  cases[{"", "Concat"}] = Concat;
  for (const char* op : {"DepthToSpace", "SpaceToDepth"}) cases[{"", op}] = Blocks(op);
  cases[{"", "Expand"}] = Expand;
  cases[{"", "Flatten"}] = Flatten;
  cases[{"", "Identity"}] = Identity;
  cases[{"", "Reshape"}] = Reshape;
  cases[{"", "Slice"}] = Slice;
  cases[{"ai.pipec", "SliceGrad"}] = SliceGrad;
  cases[{"", "Split"}] = Split;
  cases[{"", "Squeeze"}] = Squeeze;
  cases[{"", "Tile"}] = Tile;
  cases[{"", "Transpose"}] = Transpose;
  cases[{"", "Unsqueeze"}] = Unsqueeze;
}

}  // namespace pipec
