// Normalizations and norms. Running statistics do not learn.
#include "gradient_cases.h"

namespace pipec {
namespace {

std::vector<Value*> TrainingForm(SmallModel& m, Value* x, int64_t channels, float epsilon) {
  return {m.Ops("TrainingBatchNormalization",
                {x, m.Parameter({channels}), m.Parameter({channels}), m.Random({channels}),
                 m.Constant({channels}, std::vector<double>(channels, 2))},
                {{"epsilon", epsilon}}, kPipecDomain, 3)[0]};
}

}  // namespace

std::vector<GradientCase> NormalizationCases() {
  using M = SmallModel;
  using Ints = std::vector<int64_t>;
  return {
      {"LayerNormalization", "", "with_statistics",
       [](M& m) {
         return m.Ops("LayerNormalization", {m.Parameter({2, 3, 4}), m.Parameter({4}), m.Parameter({4})},
                      {{"stash_type", static_cast<int64_t>(DType::kFloat64)}}, "", 3);
       }},
      {"LayerNormalization", "", "statistics_alone",
       [](M& m) {
         const std::vector<Value*> all =
             m.Ops("LayerNormalization", {m.Parameter({2, 3, 4}), m.Random({3, 4})},
                   {{"axis", int64_t{1}}, {"stash_type", static_cast<int64_t>(DType::kFloat64)}}, "", 3);
         return std::vector<Value*>{all[2], all[1]};
       }},
      {"BatchNormalization", "", "inference_form",
       [](M& m) {
         return m.Ops("BatchNormalization",
                      {m.Parameter({2, 3, 2, 2}), m.Parameter({3}), m.Parameter({3}), m.Random({3}),
                       m.Constant({3}, {0.5, 1, 2})},
                      {{"epsilon", 0.1f}});
       }},
      {"BatchNormalization", "", "of_vectors",
       [](M& m) {
         return m.Ops("BatchNormalization", {m.Parameter({4, 3}), m.Parameter({3}), m.Random({3}),
                                             m.Random({3}), m.Constant({3}, {0.5, 1, 2})});
       }},
      {"TrainingBatchNormalization", kPipecDomain, "images",
       [](M& m) {
         return TrainingForm(m, m.Parameter({3, 2, 2, 3}), 2, 1e-5f);
       }},
      {"TrainingBatchNormalization", kPipecDomain, "vectors",
       [](M& m) {
         return TrainingForm(m, m.Parameter({5, 3}), 3, 0.1f);
       }},
      {"InstanceNormalization", "", "images",
       [](M& m) {
         return m.Ops("InstanceNormalization", {m.Parameter({2, 3, 3, 2}), m.Parameter({3}), m.Parameter({3})},
                      {{"epsilon", 0.01f}});
       }},
      {"LpNormalization", "", "two",
       [](M& m) {
         return m.Ops("LpNormalization", {m.Parameter({2, 5})});
       }},
      {"LpNormalization", "", "one",
       [](M& m) {
         return m.Ops("LpNormalization", {m.Parameter({2, 3, 2})}, {{"p", int64_t{1}}, {"axis", int64_t{1}}});
       }},
      {"GlobalLpPool", "", "two",
       [](M& m) {
         return m.Ops("GlobalLpPool", {m.Parameter({2, 3, 4})});
       }},
      {"GlobalLpPool", "", "three",
       [](M& m) {
         return m.Ops("GlobalLpPool", {m.Parameter({1, 2, 2, 3})}, {{"p", int64_t{3}}});
       }},
      {"LpPool", "", "one",
       [](M& m) {
         return m.Ops("LpPool", {m.Parameter({1, 2, 6, 5})},
                      {{"p", int64_t{1}},
                       {"kernel_shape", Ints{3, 2}},
                       {"strides", Ints{2, 1}},
                       {"pads", Ints{1, 0, 1, 1}}});
       }},
      {"LpPool", "", "three_ceil",
       [](M& m) {
         return m.Ops("LpPool", {m.Parameter({1, 1, 7})},
                      {{"p", int64_t{3}}, {"kernel_shape", Ints{2}}, {"strides", Ints{2}}, {"ceil_mode", int64_t{1}}});
       }},
      {"LRN", "", "even_window",
       [](M& m) {
         return m.Ops("LRN", {m.Parameter({2, 5, 2, 2})},
                      {{"size", int64_t{4}}, {"alpha", 0.7f}, {"beta", 0.6f}, {"bias", 1.5f}});
       }},
  };
}

}  // namespace pipec
