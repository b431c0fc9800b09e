// Ops that read between places: GridSample in all modes, DeformConv, regions of interest.
#include "gradient_cases.h"

namespace pipec {
namespace {

using Ints = std::vector<int64_t>;
using String = std::string;

// Two samples of two channels; the grid reaches beyond X.
std::vector<Value*> Grid(SmallModel& m, const Ints& size, const Ints& out, const String& mode,
                         const String& padding, int64_t align_corners) {
  Ints x = {2, 2}, grid = {2};
  x.insert(x.end(), size.begin(), size.end());
  grid.insert(grid.end(), out.begin(), out.end());
  grid.push_back(static_cast<int64_t>(size.size()));
  return m.Ops("GridSample", {m.Parameter(x), m.Parameter(grid, -1.7, 1.7)},
               {{"mode", mode}, {"padding_mode", padding}, {"align_corners", align_corners}});
}

std::vector<Value*> Rois(SmallModel& m, Attributes::Map attributes) {
  attributes["output_height"] = int64_t{2};
  attributes["output_width"] = int64_t{3};
  Value* rois = m.Constant({3, 4}, {1.2, 0.7, 9.3, 7.1, 3, 2, 4.5, 11, -2, -3, 14, 6});
  return m.Ops("RoiAlign", {m.Parameter({2, 2, 5, 6}), rois, m.Ints({0, 1, 1})}, std::move(attributes));
}

}  // namespace

std::vector<GradientCase> SamplingCases() {
  using M = SmallModel;
  return {
      {"GridSample", "", "linear_zeros",
       [](M& m) {
         return Grid(m, {4, 5}, {3, 3}, "linear", "zeros", 0);
       }},
      {"GridSample", "", "linear_border",
       [](M& m) {
         return Grid(m, {4, 5}, {3, 3}, "linear", "border", 1);
       }},
      {"GridSample", "", "linear_reflection",
       [](M& m) {
         return Grid(m, {4, 5}, {3, 3}, "linear", "reflection", 0);
       }},
      {"GridSample", "", "linear_reflection_aligned",
       [](M& m) {
         return Grid(m, {4, 5}, {3, 3}, "linear", "reflection", 1);
       }},
      {"GridSample", "", "line", [](M& m) { return Grid(m, {6}, {4}, "linear", "zeros", 1); }},
      {"GridSample", "", "cube",
       [](M& m) {
         return Grid(m, {3, 4, 2}, {2, 2, 2}, "linear", "border", 0);
       }},
      {"GridSample", "", "cubic_zeros",
       [](M& m) {
         return Grid(m, {4, 5}, {3, 3}, "cubic", "zeros", 0);
       }},
      {"GridSample", "", "cubic_border",
       [](M& m) {
         return Grid(m, {4, 5}, {3, 3}, "cubic", "border", 0);
       }},
      {"GridSample", "", "cubic_reflection",
       [](M& m) {
         return Grid(m, {4, 5}, {3, 3}, "cubic", "reflection", 1);
       }},
      {"GridSample", "", "nearest",
       [](M& m) {
         return m.Ops("GridSample", {m.Parameter({2, 2, 4, 5}), m.Random({2, 3, 3, 2})},
                      {{"mode", String("nearest")}});
       }},
      {"GridSample", "", "nearest_cube_reflection",
       [](M& m) {
         return m.Ops("GridSample", {m.Parameter({1, 2, 3, 4, 2}), m.Random({1, 2, 2, 2, 3})},
                      {{"mode", String("nearest")}, {"padding_mode", String("reflection")}});
       }},

      {"DeformConv", "", "plain",
       [](M& m) {
         return m.Ops("DeformConv",
                      {m.Parameter({1, 2, 4, 4}), m.Parameter({3, 2, 2, 2}), m.Parameter({1, 8, 3, 3})});
       }},
      {"DeformConv", "", "groups_mask_bias",
       [](M& m) {
         return m.Ops("DeformConv",
                      {m.Parameter({2, 4, 6, 5}), m.Parameter({4, 2, 2, 2}), m.Parameter({2, 16, 3, 6}),
                       m.Parameter({4}), m.Parameter({2, 8, 3, 6})},
                      {{"group", int64_t{2}},
                       {"offset_group", int64_t{2}},
                       {"strides", Ints{2, 1}},
                       {"pads", Ints{0, 1, 1, 1}},
                       {"dilations", Ints{2, 1}}});
       }},

      {"RoiAlign", "", "half_pixel",
       [](M& m) {
         return Rois(m, {{"spatial_scale", 0.5f}});
       }},
      {"RoiAlign", "", "output_half_pixel",
       [](M& m) {
         return Rois(
             m, {{"coordinate_transformation_mode", String("output_half_pixel")}, {"spatial_scale", 0.3f}});
       }},
      {"RoiAlign", "", "sampling_ratio",
       [](M& m) {
         return Rois(m, {{"sampling_ratio", int64_t{3}}, {"spatial_scale", 0.7f}});
       }},
      {"MaxRoiPool", "", "",
       [](M& m) {
         Value* rois = m.Constant({3, 5}, {0, 1, 0, 9, 7, 1, 3, 2, 5, 11, 1, -3, -2, 14, 6});
         return m.Ops("MaxRoiPool", {m.Parameter({2, 2, 5, 6}), rois},
                      {{"pooled_shape", Ints{2, 3}}, {"spatial_scale", 0.5f}});
       }},
  };
}

}  // namespace pipec
