// Ops that lay elements anew, Fourier transforms, determinants, products along an axis, quantisation.
#include "gradient_cases.h"

namespace pipec {
namespace {

using Ints = std::vector<int64_t>;
using String = std::string;

std::vector<Value*> Dft(SmallModel& m, std::vector<int64_t> shape, Value* length, int64_t axis,
                        Attributes::Map attributes) {
  return m.Ops("DFT", {m.Parameter(std::move(shape)), length, m.Ints({}, {axis})}, std::move(attributes));
}

Value* Int8s(SmallModel& m, const std::vector<int64_t>& shape, const std::string& contents) {
  return m.graph().AddConstant("q", {DType::kInt8, Shape(shape.begin(), shape.end())}, contents);
}

// In steps that float32, which a scale must be, holds exactly.
std::vector<Value*> Dequantize(SmallModel& m, const std::vector<int64_t>& shape, const std::string& contents,
                               Value* scale, Value* zero_point, Attributes::Map attributes) {
  Value* single = m.Op("Cast", {scale}, {{"to", static_cast<int64_t>(DType::kFloat32)}});
  Value* y = m.Op("DequantizeLinear", {Int8s(m, shape, contents), single, zero_point}, std::move(attributes));
  return m.Ops("Cast", {y}, {{"to", static_cast<int64_t>(DType::kFloat64)}});
}

}  // namespace

std::vector<GradientCase> LinearCases() {
  using M = SmallModel;
  return {
      {"DepthToSpace", "", "dcr",
       [](M& m) {
         return m.Ops("DepthToSpace", {m.Parameter({2, 8, 2, 3})}, {{"blocksize", int64_t{2}}});
       }},
      {"DepthToSpace", "", "crd",
       [](M& m) {
         return m.Ops("DepthToSpace", {m.Parameter({1, 18, 2, 3})},
                      {{"blocksize", int64_t{3}}, {"mode", String("CRD")}});
       }},
      {"SpaceToDepth", "", "",
       [](M& m) {
         return m.Ops("SpaceToDepth", {m.Parameter({2, 3, 4, 6})}, {{"blocksize", int64_t{2}}});
       }},
      {"Col2Im", "", "overlapping",
       [](M& m) {
         return m.Ops("Col2Im", {m.Parameter({2, 12, 12}), m.Ints({4, 5}), m.Ints({2, 2})});
       }},
      {"Col2Im", "", "padded_strides_dilations",
       [](M& m) {
         return m.Ops("Col2Im", {m.Parameter({1, 12, 9}), m.Ints({5, 6}), m.Ints({2, 3})},
                      {{"pads", Ints{1, 0, 1, 2}}, {"strides", Ints{2, 2}}, {"dilations", Ints{2, 1}}});
       }},
      {"MaxUnpool", "", "images",
       [](M& m) {
         return m.Ops("MaxUnpool",
                      {m.Parameter({1, 2, 2, 2}), m.Ints({1, 2, 2, 2}, {1, 6, 9, 15, 16, 18, 28, 27})},
                      {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}});
       }},
      {"MaxUnpool", "", "output_shape",
       [](M& m) {
         return m.Ops("MaxUnpool", {m.Parameter({1, 1, 3}), m.Ints({1, 1, 3}, {0, 3, 4}), m.Ints({1, 1, 8})},
                      {{"kernel_shape", Ints{2}}, {"strides", Ints{2}}});
       }},

      {"DFT", "", "real",
       [](M& m) {
         return Dft(m, {2, 5, 1}, nullptr, 1, {});
       }},
      {"DFT", "", "complex_first_axis",
       [](M& m) {
         return Dft(m, {6, 2, 2}, nullptr, 0, {});
       }},
      {"DFT", "", "filled_up",
       [](M& m) {
         return Dft(m, {2, 5, 2}, m.Ints({}, {7}), -2, {});
       }},
      {"DFT", "", "cut_off",
       [](M& m) {
         return Dft(m, {2, 6, 1}, m.Ints({}, {4}), 1, {});
       }},
      {"DFT", "", "onesided_even",
       [](M& m) {
         return Dft(m, {2, 6, 1}, nullptr, 1, {{"onesided", int64_t{1}}});
       }},
      {"DFT", "", "onesided_odd",
       [](M& m) {
         return Dft(m, {5, 2, 1}, m.Ints({}, {7}), 0, {{"onesided", int64_t{1}}});
       }},
      {"DFT", "", "inverse",
       [](M& m) {
         return Dft(m, {2, 5, 2}, nullptr, 1, {{"inverse", int64_t{1}}});
       }},
      {"DFT", "", "inverse_cut_real",
       [](M& m) {
         return Dft(m, {2, 5, 1}, m.Ints({}, {3}), 1, {{"inverse", int64_t{1}}});
       }},
      {"DFT", "", "inverse_onesided",
       [](M& m) {
         return Dft(m, {2, 4, 2}, nullptr, 1, {{"inverse", int64_t{1}}, {"onesided", int64_t{1}}});
       }},
      {"DFT", "", "inverse_onesided_odd",
       [](M& m) {
         return Dft(m, {2, 4, 2}, m.Ints({}, {7}), 1, {{"inverse", int64_t{1}}, {"onesided", int64_t{1}}});
       }},
      {"STFT", "", "window",
       [](M& m) {
         return m.Ops("STFT", {m.Parameter({2, 11, 1}), m.Ints({}, {3}), m.Parameter({4})});
       }},
      {"STFT", "", "complex_no_window",
       [](M& m) {
         return m.Ops("STFT", {m.Parameter({1, 9, 2}), m.Ints({}, {2}), nullptr, m.Ints({}, {5})},
                      {{"onesided", int64_t{0}}});
       }},

      {"Det", "", "batched",
       [](M& m) {
         return m.Ops("Det", {m.Parameter({2, 3, 3})});
       }},
      {"Det", "", "singular",
       [](M& m) {
         return m.Ops("Det", {m.ParameterOf({3, 3}, {1, 2, 3, 2, 4, 6, 1, 0, 1})});
       }},
      {"Det", "", "of_one",
       [](M& m) {
         return m.Ops("Det", {m.Parameter({2, 1, 1})});
       }},

      {"CumProd", "", "plain",
       [](M& m) {
         return m.Ops("CumProd", {m.Parameter({2, 4}), m.Ints({}, {-1})});
       }},
      {"CumProd", "", "exclusive_first_axis",
       [](M& m) {
         return m.Ops("CumProd", {m.Parameter({4, 2, 2}), m.Ints({}, {0})}, {{"exclusive", int64_t{1}}});
       }},
      {"CumProd", "", "reverse",
       [](M& m) {
         return m.Ops("CumProd", {m.Parameter({2, 4, 2}), m.Ints({}, {1})}, {{"reverse", int64_t{1}}});
       }},
      {"CumProd", "", "exclusive_reverse_zeros",
       [](M& m) {
         return m.Ops("CumProd", {m.ParameterOf({2, 4}, {1, 0, 3, 2, 0, 2, 0, 3}), m.Ints({}, {1})},
                      {{"exclusive", int64_t{1}}, {"reverse", int64_t{1}}});
       }},
      {"CumProd", "", "zeros",
       [](M& m) {
         return m.Ops("CumProd", {m.ParameterOf({2, 4}, {1, 0, 3, 2, 0, 2, 0, 3}), m.Ints({}, {1})});
       }},

      {"ScatterElements", "", "multiplied",
       [](M& m) {
         return m.Ops("ScatterElements",
                      {m.Parameter({3, 3}), m.Ints({2, 2}, {0, 2, 0, 2}), m.Parameter({2, 2})},
                      {{"reduction", String("mul")}});
       }},
      {"ScatterND", "", "multiplied_by_zeros",
       [](M& m) {
         return m.Ops(
             "ScatterND",
             {m.Parameter({4}), m.Ints({6, 1}, {3, 0, 3, 1, 1, 1}), m.ParameterOf({6}, {0, 2, 3, 0, 0, 5})},
             {{"reduction", String("mul")}});
       }},
      {"TensorScatter", "", "linear",
       [](M& m) {
         return m.Ops("TensorScatter",
                      {m.Parameter({2, 3, 5, 2}), m.Parameter({2, 3, 2, 2}), m.Ints({3, 1})});
       }},
      {"TensorScatter", "", "circular",
       [](M& m) {
         return m.Ops("TensorScatter", {m.Parameter({2, 4, 2}), m.Parameter({2, 3, 2}), m.Ints({3, 1})},
                      {{"mode", String("circular")}, {"axis", int64_t{1}}});
       }},
      {"TensorScatter", "", "from_the_beginning",
       [](M& m) {
         return m.Ops("TensorScatter", {m.Parameter({2, 4, 2}), m.Parameter({2, 3, 2})});
       }},

      {"DequantizeLinear", "", "one_scale",
       [](M& m) {
         return Dequantize(m, {2, 3}, "\1\2\3\4\5\6", m.ParameterOf({}, {0.25}), Int8s(m, {}, "\2"), {});
       },
       0x1p-8},
      {"DequantizeLinear", "", "axis",
       [](M& m) {
         return Dequantize(m, {2, 3}, "\1\2\3\4\5\6", m.ParameterOf({3}, {0.5, 1, 2}),
                           Int8s(m, {3}, "\1\2\3"), {});
       },
       0x1p-8},
      {"DequantizeLinear", "", "blocks",
       [](M& m) {
         return Dequantize(m, {2, 4}, "\1\2\3\4\5\6\7\x8", m.ParameterOf({2, 2}, {0.5, 1, 2, 0.25}), nullptr,
                           {{"axis", int64_t{1}}, {"block_size", int64_t{2}}});
       },
       0x1p-8},

      {"Einsum", "", "broadcast_axes",
       [](M& m) {
         return m.Ops("Einsum", {m.Parameter({2, 3, 4}), m.Parameter({3, 4, 5})},
                      {{"equation", String("b...j,...jk->b...k")}});
       }},
      {"Einsum", "", "implicit_broadcast",
       [](M& m) {
         return m.Ops("Einsum", {m.Parameter({2, 1, 3}), m.Parameter({2, 5, 3})},
                      {{"equation", String("...j,...j")}});
       }},
      {"Einsum", "", "diagonal",
       [](M& m) {
         return m.Ops("Einsum", {m.Parameter({2, 3, 3})}, {{"equation", String("...ii->...i")}});
       }},
      {"Einsum", "", "trace_and_diagonal",
       [](M& m) {
         return m.Ops("Einsum", {m.Parameter({3, 3}), m.Parameter({2, 2, 2})},
                      {{"equation", String("ii,jjj->j")}});
       }},
      {"Einsum", "", "sizes_of_one_summed",
       [](M& m) {
         return m.Ops("Einsum", {m.Parameter({2, 1}), m.Parameter({2, 3})},
                      {{"equation", String("ij,ij->i")}});
       }},
  };
}

}  // namespace pipec
