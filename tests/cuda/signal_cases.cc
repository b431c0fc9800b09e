#include "tests/cuda/signal_cases.h"

#include <algorithm>
#include <vector>

#include "tests/cuda/draw.h"

namespace pipec {
namespace {

KernelCase InstanceNormalization(Random& random) {
  KernelCase c = Named("", "InstanceNormalization");
  const TensorType x{AnyFloat(random), {Draw(random, 1, 3), Draw(random, 1, 4), Draw(random, 2, 9), 5}};
  AddInput(c, x, random);
  for (int k = 0; k < 2; ++k) AddInput(c, {x.dtype, {x.shape[1]}}, random);
  c.spec.attributes.Set("epsilon", 0.1f);
  c.spec.outputs.push_back({x});
  return c;
}

KernelCase LpNormalization(Random& random) {
  KernelCase c = Named("", "LpNormalization");
  const TensorType x{AnyFloat(random), {Draw(random, 1, 4), Draw(random, 1, 9), Draw(random, 1, 5)}};
  AddInput(c, x, random);
  c.spec.attributes.Set("axis", Draw(random, -3, 2));
  c.spec.attributes.Set("p", Draw(random, 1, 2));
  c.spec.outputs.push_back({x});
  return c;
}

KernelCase Lrn(Random& random) {
  KernelCase c = Named("", "LRN");
  const TensorType x{AnyFloat(random), {Draw(random, 1, 3), Draw(random, 1, 7), Draw(random, 1, 6)}};
  AddInput(c, x, random);
  c.spec.attributes.Set("size", Draw(random, 1, 6));
  c.spec.attributes.Set("alpha", 0.5f);
  c.spec.outputs.push_back({x});
  return c;
}

KernelCase MaxUnpool(Random& random) {
  KernelCase c = Named("", "MaxUnpool");
  const TensorType x{AnyFloat(random), {Draw(random, 1, 2), Draw(random, 1, 2), Draw(random, 1, 4), 3}};
  const int64_t side = Draw(random, 1, 2);
  TensorType y = x;
  for (int i = 2; i < 4; ++i) y.shape[i] = (x.shape[i] - 1) * side + side;
  AddInput(c, x, random);
  std::vector<int64_t> places(x.elements());
  for (int64_t& place : places) place = Draw(random, 0, y.elements() - 1);
  c.spec.inputs.push_back({{DType::kInt64, x.shape}});
  c.inputs.push_back(Int64s(places));
  c.spec.attributes.Set("kernel_shape", std::vector<int64_t>{side, side});
  c.spec.attributes.Set("strides", std::vector<int64_t>{side, side});
  c.spec.outputs.push_back({y});
  return c;
}

KernelCase Col2Im(Random& random) {
  KernelCase c = Named("", "Col2Im");
  const int64_t n = Draw(random, 1, 2), channels = Draw(random, 1, 2);
  std::vector<int64_t> image, block, strides, dilations, pads, after;
  int64_t taps = 1, blocks = 1;
  for (int i = 0; i < 2; ++i) {
    block.push_back(Draw(random, 1, 3));
    strides.push_back(Draw(random, 1, 2));
    dilations.push_back(Draw(random, 1, 2));
    pads.push_back(Draw(random, 0, 1));
    after.push_back(Draw(random, 0, 1));
    image.push_back(Draw(random, dilations[i] * (block[i] - 1) + 1, 8));
    taps *= block[i];
    blocks *= (image[i] + pads[i] + after[i] - dilations[i] * (block[i] - 1) - 1) / strides[i] + 1;
  }
  pads.insert(pads.end(), after.begin(), after.end());
  const DType dtype = AnyFloat(random);
  AddInput(c, {dtype, {n, channels * taps, blocks}}, random);
  AddConstant(c, image);
  AddConstant(c, block);
  c.spec.attributes.Set("strides", strides);
  c.spec.attributes.Set("dilations", dilations);
  c.spec.attributes.Set("pads", pads);
  c.spec.outputs.push_back({{dtype, {n, channels, image[0], image[1]}}});
  return c;
}

KernelCase Det(Random& random) {
  KernelCase c = Named("", "Det");
  const int64_t m = Draw(random, 0, 5), n = Draw(random, 1, 4);
  const DType dtype = AnyFloat(random);
  AddInput(c, {dtype, {n, m, m}}, random);
  c.spec.outputs.push_back({{dtype, {n}}});
  return c;
}

KernelCase Resize(Random& random) {
  KernelCase c = Named("", "Resize");
  constexpr const char* kModes[] = {"nearest", "linear", "cubic"};
  constexpr const char* kCoordinates[] = {"half_pixel", "pytorch_half_pixel",   "align_corners",
                                          "asymmetric", "half_pixel_symmetric", "tf_crop_and_resize"};
  constexpr const char* kNearest[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
  const int64_t mode = Draw(random, 0, 2), coordinates = Draw(random, 0, 5);
  c.spec.attributes.Set("mode", std::string(kModes[mode]));
  c.spec.attributes.Set("coordinate_transformation_mode", std::string(kCoordinates[coordinates]));
  c.spec.attributes.Set("nearest_mode", std::string(kNearest[Draw(random, 0, 3)]));
  c.spec.attributes.Set("extrapolation_value", 0.5f);
  if (mode > 0 && Draw(random, 0, 1)) c.spec.attributes.Set("antialias", int64_t{1});
  if (mode > 1 && Draw(random, 0, 1)) c.spec.attributes.Set("exclude_outside", int64_t{1});
  const bool moves = mode == 0 && coordinates != 5;
  const TensorType x{moves ? AnyType(random) : AnyFloat(random),
                     {2, Draw(random, 1, 3), Draw(random, 1, 7), 5}};
  AddInput(c, x, random);
  Shape shape = x.shape;
  for (int i = 2; i < 4; ++i) shape[i] = Draw(random, 1, 9);
  c.spec.attributes.Set("axes", std::vector<int64_t>{2, 3});
  const float region[] = {0.1f, -0.2f, 0.9f, 1.1f};
  c.spec.inputs.push_back({{DType::kFloat32, {4}}});
  c.inputs.emplace_back(reinterpret_cast<const char*>(region), sizeof region);
  c.constants = {1};
  c.spec.inputs.push_back({});
  c.spec.inputs.back().present = false;
  c.inputs.emplace_back();
  AddConstant(c, {shape[2], shape[3]});
  c.spec.outputs.push_back({{x.dtype, shape}});
  return c;
}

KernelCase GridSample(Random& random) {
  KernelCase c = Named("", "GridSample");
  constexpr const char* kModes[] = {"nearest", "linear", "cubic"};
  constexpr const char* kPaddings[] = {"zeros", "border", "reflection"};
  const int64_t rank = Draw(random, 1, 3), n = Draw(random, 1, 2), channels = Draw(random, 1, 3);
  // Where a coordinate lies between two pixels is reckoned in float64, so 16 bits do no harm.
  const DType dtype = AnyFloat(random);
  Shape x{n, channels}, grid{n}, y{n, channels};
  for (int64_t i = 0; i < rank; ++i) {
    x.push_back(Draw(random, 1, 5));
    grid.push_back(Draw(random, 1, 4));
    y.push_back(grid.back());
  }
  grid.push_back(rank);
  c.spec.attributes.Set("mode", std::string(kModes[Draw(random, 0, 2)]));
  c.spec.attributes.Set("padding_mode", std::string(kPaddings[Draw(random, 0, 2)]));
  c.spec.attributes.Set("align_corners", Draw(random, 0, 1));
  AddInput(c, {dtype, x}, random);
  AddInput(c, {dtype, grid}, random);
  c.spec.outputs.push_back({{dtype, y}});
  return c;
}

// Regions (R, 4), or (R, 5) with the sample first, of an image.
std::string Regions(DType dtype, int64_t regions, int64_t samples, int64_t side, bool with_sample,
                    Random& random) {
  std::string numbers;
  const auto add = [&](double x) { numbers.append(reinterpret_cast<const char*>(&x), 8); };
  for (int64_t r = 0; r < regions; ++r) {
    if (with_sample) add(static_cast<double>(Draw(random, 0, samples - 1)));
    const double x = static_cast<double>(Draw(random, -1, side - 1)),
                 y = static_cast<double>(Draw(random, -1, side - 1));
    add(x), add(y), add(x + static_cast<double>(Draw(random, 0, side))),
        add(y + static_cast<double>(Draw(random, 0, side)));
  }
  return Converted(numbers, {dtype, {static_cast<int64_t>(numbers.size() / 8)}});
}

KernelCase RoiAlign(Random& random) {
  KernelCase c = Named("", "RoiAlign");
  const int64_t n = Draw(random, 1, 2), channels = Draw(random, 1, 2), side = Draw(random, 2, 8),
                regions = Draw(random, 1, 3), rows = Draw(random, 1, 3), columns = Draw(random, 1, 3);
  const DType dtype = AnyFloat(random);
  AddInput(c, {dtype, {n, channels, side, side + 1}}, random);
  c.spec.inputs.push_back({{dtype, {regions, 4}}});
  c.inputs.push_back(Regions(dtype, regions, n, side, false, random));
  std::vector<int64_t> samples(regions);
  for (int64_t& sample : samples) sample = Draw(random, 0, n - 1);
  c.spec.inputs.push_back({{DType::kInt64, {regions}}});
  c.inputs.push_back(Int64s(samples));
  c.spec.attributes.Set("output_height", rows);
  c.spec.attributes.Set("output_width", columns);
  c.spec.attributes.Set("sampling_ratio", Draw(random, 0, 2));
  c.spec.attributes.Set("spatial_scale", 0.75f);
  if (Draw(random, 0, 1)) c.spec.attributes.Set("mode", std::string("max"));
  if (Draw(random, 0, 1))
    c.spec.attributes.Set("coordinate_transformation_mode", std::string("output_half_pixel"));
  c.spec.outputs.push_back({{dtype, {regions, channels, rows, columns}}});
  return c;
}

KernelCase MaxRoiPool(Random& random) {
  KernelCase c = Named("", "MaxRoiPool");
  const int64_t n = Draw(random, 1, 2), channels = Draw(random, 1, 2), side = Draw(random, 2, 8),
                regions = Draw(random, 1, 3), rows = Draw(random, 1, 3), columns = Draw(random, 1, 3);
  const DType dtype = AnyFloat(random);
  AddInput(c, {dtype, {n, channels, side, side + 1}}, random);
  c.spec.inputs.push_back({{dtype, {regions, 5}}});
  c.inputs.push_back(Regions(dtype, regions, n, side, true, random));
  c.spec.attributes.Set("pooled_shape", std::vector<int64_t>{rows, columns});
  c.spec.attributes.Set("spatial_scale", 0.75f);
  c.spec.outputs.push_back({{dtype, {regions, channels, rows, columns}}});
  return c;
}

KernelCase DeformConv(Random& random) {
  KernelCase c = Named("", "DeformConv");
  const int64_t n = Draw(random, 1, 2), group = Draw(random, 1, 2), offset_group = Draw(random, 1, 2);
  const int64_t channels = 2 * group, filters = group * Draw(random, 1, 2), kernel = Draw(random, 1, 2),
                stride = Draw(random, 1, 2), pad = Draw(random, 0, 1), in = Draw(random, 3, 6);
  const int64_t out = (in + 2 * pad - kernel) / stride + 1, moved = offset_group * kernel * kernel;
  const DType dtype = AnyFloat(random);
  AddInput(c, {dtype, {n, channels, in, in}}, random);
  AddInput(c, {dtype, {filters, channels / group, kernel, kernel}}, random);
  AddInput(c, {dtype, {n, 2 * moved, out, out}}, random);
  if (Draw(random, 0, 1)) {
    AddInput(c, {dtype, {filters}}, random);
    if (Draw(random, 0, 1)) AddInput(c, {dtype, {n, moved, out, out}}, random);
  }
  c.spec.attributes.Set("group", group);
  c.spec.attributes.Set("offset_group", offset_group);
  c.spec.attributes.Set("strides", std::vector<int64_t>{stride, stride});
  c.spec.attributes.Set("pads", std::vector<int64_t>{pad, pad, pad, pad});
  c.spec.outputs.push_back({{dtype, {n, filters, out, out}}});
  return c;
}

KernelCase Dft(Random& random) {
  KernelCase c = Named("", "DFT");
  const DType dtype = WideFloat(random);
  const bool inverse = Draw(random, 0, 1) != 0, onesided = Draw(random, 0, 1) != 0;
  const int64_t parts = onesided && !inverse ? 1 : onesided ? 2 : Draw(random, 1, 2);
  const Shape x{Draw(random, 1, 3), Draw(random, 2, 9), Draw(random, 2, 5), parts};
  const int64_t axis = Draw(random, 0, 2), n = Draw(random, 2, 11);
  AddInput(c, {dtype, x}, random);
  AddConstant(c, {n});
  AddConstant(c, {axis});
  for (int k : {1, 2}) c.spec.inputs[k].type.shape = {};
  c.spec.attributes.Set("inverse", int64_t{inverse});
  c.spec.attributes.Set("onesided", int64_t{onesided});
  Shape y = x;
  y[axis] = onesided && !inverse ? n / 2 + 1 : n;
  y[3] = inverse && onesided ? 1 : 2;
  c.spec.outputs.push_back({{dtype, y}});
  return c;
}

KernelCase Stft(Random& random) {
  KernelCase c = Named("", "STFT");
  const DType dtype = WideFloat(random);
  const bool onesided = Draw(random, 0, 1) != 0;
  const int64_t n = Draw(random, 1, 9), step = Draw(random, 1, 4), places = n + Draw(random, 0, 12),
                batch = Draw(random, 1, 2);
  AddInput(c, {dtype, {batch, places, onesided ? 1 : Draw(random, 1, 2)}}, random);
  AddConstant(c, {step});
  AddInput(c, {dtype, {n}}, random);
  AddConstant(c, {n});
  for (int k : {1, 3}) c.spec.inputs[k].type.shape = {};
  c.spec.attributes.Set("onesided", int64_t{onesided});
  c.spec.outputs.push_back({{dtype, {batch, (places - n) / step + 1, onesided ? n / 2 + 1 : n, 2}}});
  return c;
}

KernelCase Einsum(Random& random) {
  KernelCase c = Named("", "Einsum");
  const DType dtype = WideFloat(random);
  // By letter.
  const int64_t dims[] = {Draw(random, 1, 5), Draw(random, 1, 5), Draw(random, 1, 5), Draw(random, 1, 5)};
  constexpr const char* kEquations[] = {"ab,bc->ac", "abc,abd->acd", "ab->ba",       "ab->a", "aa->a",
                                        "ab,ab->",   "a,b->ab",      "ab,bc,cd->ad", "abc->", "aab,b->ab"};
  const std::string equation = kEquations[Draw(random, 0, 9)];
  c.spec.attributes.Set("equation", equation);
  Shape shape;
  bool result = false;
  const auto end = [&] {
    if (result) {
      c.spec.outputs.push_back({{dtype, shape}});
    } else {
      AddInput(c, {dtype, shape}, random);
    }
    shape.clear();
  };
  for (const char letter : equation) {
    if (letter >= 'a') shape.push_back(dims[letter - 'a']);
    if (letter == ',' || letter == '-') end();
    if (letter == '>') result = true;
  }
  end();
  return c;
}

KernelCase DequantizeLinear(Random& random) {
  KernelCase c = Named("", "DequantizeLinear");
  constexpr DType kTypes[] = {DType::kUint8, DType::kInt8, DType::kInt16, DType::kInt32};
  const TensorType q{kTypes[Draw(random, 0, 3)],
                     {Draw(random, 1, 4), Draw(random, 1, 7), Draw(random, 1, 5)}};
  AddInput(c, q, random);
  Shape scale;
  if (const int64_t form = Draw(random, 0, 2); form > 0) {
    const int64_t axis = Draw(random, 0, 2), block = Draw(random, 1, 3);
    c.spec.attributes.Set("axis", axis);
    scale = {q.shape[axis]};
    if (form == 2) {
      c.spec.attributes.Set("block_size", block);
      scale = q.shape;
      scale[axis] = (q.shape[axis] + block - 1) / block;
    }
  }
  AddInput(c, {DType::kFloat32, scale}, random, true);
  if (Draw(random, 0, 1)) AddInput(c, {q.dtype, scale}, random);
  c.spec.outputs.push_back({{DType::kFloat32, q.shape}});
  return c;
}

}  // namespace

void AddSignalCases(std::map<std::pair<std::string, std::string>, MakeCase>& cases) {
  cases[{"", "Col2Im"}] = Col2Im;
  cases[{"", "DFT"}] = Dft;
  cases[{"", "DeformConv"}] = DeformConv;
  cases[{"", "DequantizeLinear"}] = DequantizeLinear;
  cases[{"", "Det"}] = Det;
  cases[{"", "Einsum"}] = Einsum;
  cases[{"", "GridSample"}] = GridSample;
  cases[{"", "InstanceNormalization"}] = InstanceNormalization;
  cases[{"", "LRN"}] = Lrn;
  cases[{"", "LpNormalization"}] = LpNormalization;
  cases[{"", "MaxRoiPool"}] = MaxRoiPool;
  cases[{"", "MaxUnpool"}] = MaxUnpool;
  cases[{"", "Resize"}] = Resize;
  cases[{"", "RoiAlign"}] = RoiAlign;
  cases[{"", "STFT"}] = Stft;
}

}  // namespace pipec
