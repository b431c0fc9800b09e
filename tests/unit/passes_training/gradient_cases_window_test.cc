// Convolutions, pooling and resizing: strides, padding, dilations, groups, one to three axes.
#include "gradient_cases.h"

namespace pipec {

std::vector<GradientCase> WindowCases() {
  using M = SmallModel;
  using Ints = std::vector<int64_t>;
  using String = std::string;
  return {
      {"Conv", "", "plain",
       [](M& m) {
         return m.Ops("Conv", {m.Parameter({2, 3, 4, 5}), m.Parameter({2, 3, 3, 2})});
       }},
      {"Conv", "", "bias_stride_padding",
       [](M& m) {
         return m.Ops("Conv", {m.Parameter({2, 2, 5, 6}), m.Parameter({3, 2, 3, 3}), m.Parameter({3})},
                      {{"strides", Ints{2, 3}}, {"pads", Ints{1, 0, 2, 1}}});
       }},
      {"Conv", "", "dilated_groups",
       [](M& m) {
         return m.Ops("Conv", {m.Parameter({2, 4, 7, 6}), m.Parameter({6, 2, 3, 2}), m.Parameter({6})},
                      {{"group", int64_t{2}}, {"dilations", Ints{2, 3}}, {"pads", Ints{1, 1, 1, 1}}});
       }},
      {"Conv", "", "depthwise_line",
       [](M& m) {
         return m.Ops("Conv", {m.Parameter({1, 3, 8}), m.Parameter({3, 1, 3})},
                      {{"group", int64_t{3}}, {"strides", Ints{2}}, {"auto_pad", String("SAME_LOWER")}});
       }},
      {"Conv", "", "cube_same_upper",
       [](M& m) {
         return m.Ops("Conv", {m.Parameter({1, 2, 3, 4, 3}), m.Parameter({2, 2, 2, 2, 3})},
                      {{"auto_pad", String("SAME_UPPER")}, {"strides", Ints{1, 2, 2}}});
       }},
      {"Conv", "", "patches",
       [](M& m) {
         return m.Ops("Conv", {m.Parameter({1, 2, 7, 7}), m.Parameter({2, 2, 2, 2})}, {{"strides", Ints{3, 3}}});
       }},
      {"ConvTranspose", "", "bias_stride",
       [](M& m) {
         return m.Ops("ConvTranspose", {m.Parameter({2, 3, 3, 4}), m.Parameter({3, 2, 3, 2}), m.Parameter({2})},
                      {{"strides", Ints{2, 3}}, {"pads", Ints{1, 0, 0, 1}}, {"output_padding", Ints{1, 2}}});
       }},
      {"ConvTranspose", "", "dilated_groups",
       [](M& m) {
         return m.Ops("ConvTranspose", {m.Parameter({1, 4, 3, 3}), m.Parameter({4, 3, 2, 2})},
                      {{"group", int64_t{2}}, {"dilations", Ints{2, 1}}});
       }},
      {"ConvTranspose", "", "output_shape",
       [](M& m) {
         return m.Ops("ConvTranspose", {m.Parameter({1, 2, 4}), m.Parameter({2, 3, 3})},
                      {{"strides", Ints{2}}, {"output_shape", Ints{8}}, {"auto_pad", String("SAME_UPPER")}});
       }},

      {"MaxPool", "", "overlapping",
       [](M& m) {
         return m.Ops("MaxPool", {m.Parameter({2, 2, 6, 7})},
                      {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}});
       }},
      {"MaxPool", "", "dilated_ceil",
       [](M& m) {
         return m.Ops("MaxPool", {m.Parameter({1, 2, 8, 7})},
                      {{"kernel_shape", Ints{2, 3}}, {"strides", Ints{3, 2}}, {"dilations", Ints{2, 1}},
                       {"ceil_mode", int64_t{1}}});
       }},
      {"MaxPool", "", "column_major",
       [](M& m) {
         return std::vector<Value*>{m.Ops("MaxPool", {m.Parameter({2, 2, 4, 6})},
                                          {{"kernel_shape", Ints{2, 3}}, {"storage_order", int64_t{1}}}, "", 2)[0]};
       }},
      {"MaxPool", "", "line",
       [](M& m) {
         return m.Ops("MaxPool", {m.Parameter({2, 1, 9})},
                      {{"kernel_shape", Ints{4}}, {"auto_pad", String("SAME_UPPER")}});
       }},
      {"MaxPool", "", "cube",
       [](M& m) {
         return m.Ops("MaxPool", {m.Parameter({1, 1, 3, 4, 3})}, {{"kernel_shape", Ints{2, 2, 2}}});
       }},
      {"AveragePool", "", "overlapping",
       [](M& m) {
         return m.Ops("AveragePool", {m.Parameter({2, 2, 6, 7})},
                      {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 0, 1}}});
       }},
      {"AveragePool", "", "padding_counts_ceil",
       [](M& m) {
         return m.Ops("AveragePool", {m.Parameter({1, 2, 6, 6})},
                      {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}},
                       {"ceil_mode", int64_t{1}}, {"count_include_pad", int64_t{1}}});
       }},
      {"AveragePool", "", "ceil",
       [](M& m) {
         return m.Ops("AveragePool", {m.Parameter({1, 2, 7})},
                      {{"kernel_shape", Ints{2}}, {"strides", Ints{2}}, {"ceil_mode", int64_t{1}}});
       }},
      {"AveragePool", "", "dilated_same_lower",
       [](M& m) {
         return m.Ops("AveragePool", {m.Parameter({1, 1, 3, 4, 5})},
                      {{"kernel_shape", Ints{2, 2, 2}},
                       {"dilations", Ints{1, 2, 2}},
                       {"auto_pad", String("SAME_LOWER")}});
       }},
      {"GlobalAveragePool", "", "",
       [](M& m) {
         return m.Ops("GlobalAveragePool", {m.Parameter({2, 3, 2, 4})});
       }},
      {"GlobalMaxPool", "", "",
       [](M& m) {
         return m.Ops("GlobalMaxPool", {m.Parameter({2, 3, 2, 4})});
       }},

      {"Resize", "", "nearest_scales",
       [](M& m) {
         return m.Ops("Resize", {m.Parameter({1, 2, 3, 4}), nullptr, m.Floats({1, 1, 2, 1.6f})},
                      {{"coordinate_transformation_mode", String("asymmetric")}, {"nearest_mode", String("floor")}});
       }},
      {"Resize", "", "linear_sizes",
       [](M& m) {
         return m.Ops("Resize", {m.Parameter({2, 3, 4}), nullptr, nullptr, m.Ints({7, 2})},
                      {{"mode", String("linear")}, {"axes", Ints{-2, 2}}});
       }},
      {"Resize", "", "cubic_align_corners",
       [](M& m) {
         return m.Ops("Resize", {m.Parameter({1, 1, 4, 5}), nullptr, m.Floats({1.5f, 2}), nullptr},
                      {{"mode", String("cubic")}, {"axes", Ints{2, 3}},
                       {"coordinate_transformation_mode", String("align_corners")}});
       }},
      {"Resize", "", "antialiased",
       [](M& m) {
         return m.Ops("Resize", {m.Parameter({1, 1, 7, 6}), nullptr, m.Floats({1, 1, 0.5f, 0.5f})},
                      {{"mode", String("linear")}, {"antialias", int64_t{1}}});
       }},
  };
}

}  // namespace pipec
