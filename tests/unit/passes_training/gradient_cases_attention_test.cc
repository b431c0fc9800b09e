// Attention as one node: queries, keys and values learn.
#include "gradient_cases.h"

namespace pipec {
namespace {

std::vector<Value*> Attention(SmallModel& m, std::vector<Value*> operands, Attributes::Map attributes) {
  attributes["scale"] = 0.6f;
  return m.Ops("FusedAttention", std::move(operands), std::move(attributes), kPipecDomain);
}

}  // namespace

std::vector<GradientCase> AttentionCases() {
  using M = SmallModel;
  return {
      {"FusedAttention", kPipecDomain, "plain",
       [](M& m) {
         return Attention(
             m, {m.Parameter({2, 3, 4, 5}), m.Parameter({2, 3, 6, 5}), m.Parameter({2, 3, 6, 2})}, {});
       }},
      {"FusedAttention", kPipecDomain, "causal",
       [](M& m) {
         return Attention(m, {m.Parameter({2, 5, 3}), m.Parameter({2, 5, 3}), m.Parameter({2, 5, 3})},
                          {{"causal", int64_t{1}}});
       }},
      {"FusedAttention", kPipecDomain, "added_mask",
       [](M& m) {
         return Attention(
             m, {m.Parameter({2, 3, 4}), m.Parameter({2, 5, 4}), m.Parameter({2, 5, 2}), m.Random({2, 1, 5})},
             {});
       }},
      // Of a row that sees nothing all weights are equal, and only values learn.
      {"FusedAttention", kPipecDomain, "chosen_mask_finite_fill",
       [](M& m) {
         return Attention(m,
                          {m.Parameter({2, 3, 4}), m.Parameter({2, 2, 4}), m.Parameter({2, 2, 2}),
                           m.Bools({3, 2}, std::string("\1\0\0\0\0\1", 6))},
                          {{"fill", -1.5f}});
       }},
      {"FusedAttention", kPipecDomain, "rows_of_zero",
       [](M& m) {
         return Attention(m,
                          {m.Parameter({2, 3, 4}), m.Parameter({2, 2, 4}), m.Parameter({2, 2, 2}),
                           m.Bools({3, 2}, std::string("\1\0\0\0\0\1", 6))},
                          {{"zero_rows", int64_t{1}}});
       }},
      {"FusedAttention", kPipecDomain, "queries_alone",
       [](M& m) {
         return Attention(m, {m.Parameter({3, 4}), m.Random({5, 4}), m.Random({5, 2})}, {});
       }},
      {"FusedAttention", kPipecDomain, "one_value_three_times",
       [](M& m) {
         Value* x = m.Op("Tanh", {m.Parameter({2, 4, 3})});
         return Attention(m, {x, x, x}, {});
       }},
  };
}

}  // namespace pipec
