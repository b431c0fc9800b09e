#include "tests/cuda/index_cases.h"

#include <vector>

#include "tests/cuda/draw.h"

namespace pipec {
namespace {

Shape SmallShape(Random& random, size_t least = 1) {
  Shape shape;
  const auto rank = static_cast<size_t>(Draw(random, static_cast<int64_t>(least), 3));
  while (shape.size() < rank) shape.push_back(Draw(random, 1, 9));
  if (Draw(random, 0, 1)) shape.push_back(Draw(random, 0, 1) ? 16 : 8);
  return shape;
}

// Indices in [-dim, dim).
void AddIndices(KernelCase& c, const Shape& shape, int64_t dim, bool wide, Random& random) {
  std::vector<int64_t> values(NumElements(shape));
  for (int64_t& value : values) value = Draw(random, -dim, dim - 1);
  if (wide) {
    c.spec.inputs.push_back({{DType::kInt64, shape}});
    c.inputs.push_back(Int64s(values));
  } else {
    const std::vector<int32_t> narrow(values.begin(), values.end());
    c.spec.inputs.push_back({{DType::kInt32, shape}});
    c.inputs.emplace_back(reinterpret_cast<const char*>(narrow.data()), narrow.size() * sizeof(int32_t));
  }
}

// Data, an axis of it, indices, and the shape of what is gathered.
struct Gathered {
  TensorType data;
  int64_t axis;
  Shape indices, shape;
};
Gathered DrawGathered(KernelCase& c, DType dtype, Random& random) {
  Gathered g;
  g.data = {dtype, SmallShape(random)};
  g.axis = Draw(random, 0, static_cast<int64_t>(g.data.shape.size()) - 1);
  if (Draw(random, 0, 4) == 0) g.data.shape[g.axis] = 100;
  for (int64_t rank = Draw(random, 0, 2); rank > 0; --rank) g.indices.push_back(Draw(random, 0, 6));
  if (Draw(random, 0, 4) == 0) g.indices = {300};
  g.shape.assign(g.data.shape.begin(), g.data.shape.begin() + g.axis);
  g.shape.insert(g.shape.end(), g.indices.begin(), g.indices.end());
  g.shape.insert(g.shape.end(), g.data.shape.begin() + g.axis + 1, g.data.shape.end());
  c.spec.attributes.Set("axis", g.axis);
  return g;
}

KernelCase Gather(Random& random) {
  KernelCase c = Named("", "Gather");
  const Gathered g = DrawGathered(c, AnyType(random), random);
  AddInput(c, g.data, random);
  AddIndices(c, g.indices, g.data.shape[g.axis], Draw(random, 0, 1), random);
  c.spec.outputs.push_back({{g.data.dtype, g.shape}});
  return c;
}

KernelCase GatherGrad(Random& random) {
  KernelCase c = Named("ai.pipec", "GatherGrad");
  const Gathered g = DrawGathered(c, AnyFloat(random), random);
  AddInput(c, {g.data.dtype, g.shape}, random);
  AddIndices(c, g.indices, g.data.shape[g.axis], Draw(random, 0, 1), random);
  c.spec.attributes.Set("shape", std::vector<int64_t>(g.data.shape.begin(), g.data.shape.end()));
  c.spec.outputs.push_back({g.data});
  return c;
}

// Types whose updates are more than copies.
DType Updated(Random& random, bool replaces) {
  if (replaces) return AnyType(random);
  const DType dtype = AnyFloat(random);
  return Draw(random, 0, 3) ? dtype : DType::kInt64;
}
bool SetReduction(KernelCase& c, Random& random) {
  constexpr const char* kNames[] = {"none", "add", "mul", "max", "min"};
  const int64_t which = Draw(random, 0, 4);
  c.spec.attributes.Set("reduction", std::string(kNames[which]));
  return which == 0;
}

MakeCase Elements(const std::string& op) {
  return [=](Random& random) {
    KernelCase c = Named("", op);
    const bool scatters = op == "ScatterElements", replaces = !scatters || SetReduction(c, random);
    const TensorType data{Updated(random, replaces), SmallShape(random)};
    const int64_t axis = Draw(random, 0, static_cast<int64_t>(data.shape.size()) - 1);
    Shape indices = data.shape;
    for (int64_t& dim : indices) dim = Draw(random, 1, dim);
    indices[axis] = Draw(random, 0, 9);
    c.spec.attributes.Set("axis", axis);
    AddInput(c, data, random);
    AddIndices(c, indices, data.shape[axis], Draw(random, 0, 1), random);
    if (scatters) AddInput(c, {data.dtype, indices}, random);
    c.spec.outputs.push_back({{data.dtype, scatters ? data.shape : indices}});
    return c;
  };
}

MakeCase Tuples(const std::string& op) {
  return [=](Random& random) {
    KernelCase c = Named("", op);
    const bool scatters = op == "ScatterND", replaces = !scatters || SetReduction(c, random);
    const TensorType data{Updated(random, replaces), SmallShape(random, 2)};
    const auto rank = static_cast<int64_t>(data.shape.size());
    const int64_t batch_dims = scatters ? 0 : Draw(random, 0, 1), tuple = Draw(random, 1, rank - batch_dims);
    Shape indices(data.shape.begin(), data.shape.begin() + batch_dims);
    indices.push_back(Draw(random, 0, 4) ? Draw(random, 0, 7) : 280);
    Shape gathered = indices;
    gathered.insert(gathered.end(), data.shape.begin() + batch_dims + tuple, data.shape.end());
    indices.push_back(tuple);
    if (!scatters) c.spec.attributes.Set("batch_dims", batch_dims);
    AddInput(c, data, random);
    std::vector<int64_t> values(NumElements(indices));
    for (size_t i = 0; i < values.size(); ++i) {
      const int64_t dim = data.shape[batch_dims + static_cast<int64_t>(i) % tuple];
      values[i] = Draw(random, -dim, dim - 1);
    }
    c.spec.inputs.push_back({{DType::kInt64, indices}});
    c.inputs.push_back(Int64s(values));
    if (scatters) AddInput(c, {data.dtype, gathered}, random);
    c.spec.outputs.push_back({{data.dtype, scatters ? data.shape : gathered}});
    return c;
  };
}

KernelCase TensorScatter(Random& random) {
  KernelCase c = Named("", "TensorScatter");
  const TensorType cache{AnyType(random), {Draw(random, 1, 3), Draw(random, 1, 3), Draw(random, 1, 9), 8}};
  const int64_t axis = Draw(random, 1, 2), length = cache.shape[axis];
  const bool circular = Draw(random, 0, 1) != 0;
  TensorType update = cache;
  update.shape[axis] = Draw(random, 1, length);
  c.spec.attributes.Set("axis", axis);
  if (circular) c.spec.attributes.Set("mode", std::string("circular"));
  AddInput(c, cache, random);
  AddInput(c, update, random);
  if (Draw(random, 0, 1)) {
    std::vector<int64_t> starts(cache.shape[0]);
    for (int64_t& start : starts)
      start = Draw(random, 0, circular ? length - 1 : length - update.shape[axis]);
    c.spec.inputs.push_back({{DType::kInt64, {cache.shape[0]}}});
    c.inputs.push_back(Int64s(starts));
  }
  c.spec.outputs.push_back({cache});
  return c;
}

KernelCase ReverseSequence(Random& random) {
  KernelCase c = Named("", "ReverseSequence");
  const TensorType x{AnyType(random), {Draw(random, 1, 5), Draw(random, 1, 5), Draw(random, 1, 8)}};
  const int64_t batch_axis = Draw(random, 0, 1);
  c.spec.attributes.Set("batch_axis", batch_axis);
  c.spec.attributes.Set("time_axis", 1 - batch_axis);
  AddInput(c, x, random);
  std::vector<int64_t> lengths(x.shape[batch_axis]);
  for (int64_t& length : lengths) length = Draw(random, 0, x.shape[1 - batch_axis]);
  c.spec.inputs.push_back({{DType::kInt64, {static_cast<int64_t>(lengths.size())}}});
  c.inputs.push_back(Int64s(lengths));
  c.spec.outputs.push_back({x});
  return c;
}

KernelCase OneHot(Random& random) {
  KernelCase c = Named("", "OneHot");
  Shape indices = SmallShape(random);
  if (indices.size() > 2) indices.resize(2);
  const int64_t depth = Draw(random, 1, 12), axis = Draw(random, 0, static_cast<int64_t>(indices.size()));
  c.spec.attributes.Set("axis", axis);
  if (Draw(random, 0, 2) == 0) {
    AddInput(c, {DType::kFloat32, indices}, random);
  } else {
    AddIndices(c, indices, depth + 2, Draw(random, 0, 1), random);
  }
  AddConstant(c, {depth});
  c.spec.inputs[1].type.shape = {};
  const DType dtype = AnyType(random);
  AddInput(c, {dtype, {2}}, random);
  Shape shape = indices;
  shape.insert(shape.begin() + axis, depth);
  c.spec.outputs.push_back({{dtype, shape}});
  return c;
}

KernelCase EyeLike(Random& random) {
  KernelCase c = Named("", "EyeLike");
  const Shape shape{Draw(random, 1, 9), Draw(random, 1, 9)};
  AddInput(c, {DType::kFloat32, shape}, random);
  const DType dtype = Draw(random, 0, 3) ? AnyNumber(random) : DType::kBool;
  c.spec.attributes.Set("dtype", static_cast<int64_t>(dtype));
  c.spec.attributes.Set("k", Draw(random, -10, 10));
  c.spec.outputs.push_back({{dtype, shape}});
  return c;
}

KernelCase Trilu(Random& random) {
  KernelCase c = Named("", "Trilu");
  const TensorType x{AnyType(random), SmallShape(random, 2)};
  AddInput(c, x, random);
  if (Draw(random, 0, 2)) {
    AddConstant(c, {Draw(random, 0, 5) ? Draw(random, -10, 10) : INT64_MAX});
    c.spec.inputs[1].type.shape = {};
    if (Draw(random, 0, 1)) c.constants.clear();
  }
  c.spec.attributes.Set("upper", Draw(random, 0, 1));
  c.spec.outputs.push_back({x});
  if (Draw(random, 0, 1)) c.in_place = {0};
  return c;
}

KernelCase Pad(Random& random) {
  KernelCase c = Named("", "Pad");
  const TensorType x{AnyType(random), SmallShape(random)};
  constexpr const char* kModes[] = {"constant", "edge", "reflect", "wrap"};
  const int64_t mode = Draw(random, 0, 3);
  c.spec.attributes.Set("mode", std::string(kModes[mode]));
  AddInput(c, x, random);
  const size_t rank = x.shape.size();
  std::vector<int64_t> pads(2 * rank);
  Shape shape = x.shape;
  for (size_t i = 0; i < rank; ++i) {
    for (const size_t at : {i, rank + i}) {
      pads[at] = Draw(random, -1, 4);
      if (pads[at] < 0 && shape[i] <= 1) pads[at] = 0;
      shape[i] += pads[at];
    }
  }
  AddConstant(c, pads);
  if (mode == 0 && Draw(random, 0, 1)) AddInput(c, {x.dtype, {}}, random);
  c.spec.outputs.push_back({{x.dtype, shape}});
  return c;
}

}  // namespace

void AddIndexCases(std::map<std::pair<std::string, std::string>, MakeCase>& cases) {
  cases[{"", "EyeLike"}] = EyeLike;
  cases[{"", "Gather"}] = Gather;
  cases[{"ai.pipec", "GatherGrad"}] = GatherGrad;
  for (const char* op : {"GatherElements", "ScatterElements"}) cases[{"", op}] = Elements(op);
  for (const char* op : {"GatherND", "ScatterND"}) cases[{"", op}] = Tuples(op);
  cases[{"", "OneHot"}] = OneHot;
  cases[{"", "Pad"}] = Pad;
  cases[{"", "ReverseSequence"}] = ReverseSequence;
  cases[{"", "TensorScatter"}] = TensorScatter;
  cases[{"", "Trilu"}] = Trilu;
}

}  // namespace pipec
