#include "tests/cuda/attention_cases.h"

#include <limits>

#include "tests/cuda/draw.h"

namespace pipec {
namespace {

struct Sizes {
  Shape heads;
  int64_t rows, columns, depth, width;
  Shape With(int64_t before_last, int64_t last) const {
    Shape shape = heads;
    shape.insert(shape.end(), {before_last, last});
    return shape;
  }
};

// Q, K, V; sometimes of so many rows and numbers that a head has several tiles, often of such rows as cuDNN takes.
Sizes AddOperands(KernelCase& c, DType dtype, Random& random) {
  Sizes sizes{{}, Draw(random, 1, 9), 0, Draw(random, 1, 9), Draw(random, 1, 9)};
  for (int64_t axes = Draw(random, 0, 2); axes > 0; --axes) sizes.heads.push_back(Draw(random, 1, 3));
  if (Draw(random, 0, 1)) sizes.depth = 8 * Draw(random, 1, 2), sizes.width = 8 * Draw(random, 1, 2);
  const bool large = Draw(random, 0, 9) == 0;
  if (large) sizes = {{}, Draw(random, 60, 140), 0, Draw(random, 1, 70), Draw(random, 1, 70)};
  const bool causal = Draw(random, 0, 2) == 0;
  sizes.columns = causal  ? sizes.rows
                  : large ? Draw(random, 60, 140)
                          : Draw(random, 1, 5) * (Draw(random, 0, 1) ? 1 : 4);
  if (causal) c.spec.attributes.Set("causal", int64_t{1});
  c.spec.attributes.Set("scale", large ? 0.125f : 0.5f);
  if (Draw(random, 0, 1)) c.spec.attributes.Set("zero_rows", int64_t{1});
  AddInput(c, {dtype, sizes.With(sizes.rows, sizes.depth)}, random);
  AddInput(c, {dtype, sizes.With(sizes.columns, sizes.depth)}, random);
  AddInput(c, {dtype, sizes.With(sizes.columns, sizes.width)}, random);
  return sizes;
}

// None, floats, or bools with something in their place; where all of a row is hidden it is to be 0.
void AddMask(KernelCase& c, const Sizes& sizes, DType sums, int64_t kind, Random& random) {
  if (kind == 0) return;
  AddInput(c, {kind == 1 ? sums : DType::kBool, Narrowed(sizes.With(sizes.rows, sizes.columns), random)},
           random);
  if (kind == 2 && c.spec.attributes.Int("zero_rows") == 0) c.spec.attributes.Set("fill", -3.0f);
}

DType SumsOf(DType dtype) { return dtype == DType::kFloat64 ? dtype : DType::kFloat32; }

Shape RowsOf(const Sizes& sizes) {
  Shape shape = sizes.heads;
  shape.push_back(sizes.rows);
  return shape;
}

KernelCase Forward(Random& random) {
  KernelCase c = Named("ai.pipec", "FusedAttention");
  const DType dtype = AnyFloat(random), sums = SumsOf(dtype);
  const Sizes sizes = AddOperands(c, dtype, random);
  AddMask(c, sizes, sums, Draw(random, 0, 2), random);
  // Of a row of zeros it is not compared: the largest of no scores.
  c.spec.outputs = {{{dtype, sizes.With(sizes.rows, sizes.width)}}, {{sums, RowsOf(sizes)}}};
  c.spec.outputs[1].present = c.spec.attributes.Int("zero_rows") == 0;
  return c;
}

// Logarithms above most scores, so that weights are below 1; one that is infinite, behind a mask, makes a row of zeros.
KernelCase Backward(Random& random) {
  KernelCase c = Named("ai.pipec", "FusedAttentionGrad");
  const DType dtype = AnyFloat(random), sums = SumsOf(dtype);
  const Sizes sizes = AddOperands(c, dtype, random);
  const KernelOperand q = c.spec.inputs[0], k = c.spec.inputs[1], v = c.spec.inputs[2];
  const TensorType o{dtype, sizes.With(sizes.rows, sizes.width)}, logs{sums, RowsOf(sizes)};
  c.spec.inputs.insert(c.spec.inputs.begin(), {o});
  c.inputs.insert(c.inputs.begin(), RandomContents(o, random));
  AddInput(c, o, random);
  const int64_t mask = Draw(random, 0, 2);
  std::string numbers;
  for (int64_t i = 0; i < logs.elements(); ++i) {
    const bool none = mask != 0 && c.spec.attributes.Int("zero_rows") != 0 && Draw(random, 0, 4) == 0;
    const double log =
        none ? -std::numeric_limits<double>::infinity() : static_cast<double>(Draw(random, 6, 8));
    numbers.append(reinterpret_cast<const char*>(&log), sizeof log);
  }
  c.spec.inputs.push_back({logs});
  c.inputs.push_back(Converted(numbers, logs));
  AddMask(c, sizes, sums, mask, random);
  c.spec.outputs = {q, k, v};
  return c;
}

}  // namespace

void AddAttentionCases(std::map<std::pair<std::string, std::string>, MakeCase>& cases) {
  cases[{"ai.pipec", "FusedAttention"}] = Forward;
  cases[{"ai.pipec", "FusedAttentionGrad"}] = Backward;
}

}  // namespace pipec
