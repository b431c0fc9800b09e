// Elementary functions, arithmetic, reductions and sums of products.
#include "gradient_cases.h"

namespace pipec {

std::vector<GradientCase> MathCases() {
  using M = SmallModel;
  using String = std::string;
  return {
      {"Sin", "", "",
       [](M& m) {
         return m.Ops("Sin", {m.Parameter({2, 3}, -2, 2)});
       }},
      {"Cos", "", "",
       [](M& m) {
         return m.Ops("Cos", {m.Parameter({2, 3}, -2, 2)});
       }},
      {"Tan", "", "",
       [](M& m) {
         return m.Ops("Tan", {m.Parameter({2, 3})});
       }},
      {"Sinh", "", "",
       [](M& m) {
         return m.Ops("Sinh", {m.Parameter({2, 3}, -2, 2)});
       }},
      {"Cosh", "", "",
       [](M& m) {
         return m.Ops("Cosh", {m.Parameter({2, 3}, -2, 2)});
       }},
      {"Asin", "", "",
       [](M& m) {
         return m.Ops("Asin", {m.Parameter({2, 3}, -0.8, 0.8)});
       }},
      {"Acos", "", "",
       [](M& m) {
         return m.Ops("Acos", {m.Parameter({2, 3}, -0.8, 0.8)});
       }},
      {"Atan", "", "",
       [](M& m) {
         return m.Ops("Atan", {m.Parameter({2, 3}, -2, 2)});
       }},
      {"Asinh", "", "",
       [](M& m) {
         return m.Ops("Asinh", {m.Parameter({2, 3}, -2, 2)});
       }},
      {"Acosh", "", "",
       [](M& m) {
         return m.Ops("Acosh", {m.Parameter({2, 3}, 1.5, 3)});
       }},
      {"Atanh", "", "",
       [](M& m) {
         return m.Ops("Atanh", {m.Parameter({2, 3}, -0.8, 0.8)});
       }},

      {"Mean", "", "broadcast",
       [](M& m) {
         return m.Ops("Mean", {m.Parameter({2, 3}), m.Parameter({3}), m.Parameter({2, 1})});
       }},
      {"Mod", "", "broadcast",
       [](M& m) {
         return m.Ops("Mod", {m.ParameterOf({2, 3}, {7.3, -7.3, 1.2, 5.1, 0.4, -3.7}), m.ParameterOf({3}, {2, 3, 1.5})},
                      {{"fmod", int64_t{1}}});
       }},

      {"ReduceMin", "", "axes",
       [](M& m) {
         return m.Ops("ReduceMin", {m.Parameter({2, 3, 4}), m.Ints({2, 0})});
       }},
      {"ReduceSumSquare", "", "dropped_axis",
       [](M& m) {
         return m.Ops("ReduceSumSquare", {m.Parameter({2, 3, 4}), m.Ints({1})}, {{"keepdims", int64_t{0}}});
       }},
      {"ReduceSumSquare", "", "all",
       [](M& m) {
         return m.Ops("ReduceSumSquare", {m.Parameter({2, 3})});
       }},
      {"ReduceProd", "", "axes",
       [](M& m) {
         return m.Ops("ReduceProd", {m.Parameter({2, 3, 4}), m.Ints({2, 0})});
       }},
      {"ReduceProd", "", "a_zero_and_two",
       [](M& m) {
         return m.Ops("ReduceProd", {m.ParameterOf({3, 3}, {1, 2, 3, 4, 0, 5, 0, 6, 0}), m.Ints({-1})},
                      {{"keepdims", int64_t{0}}});
       }},

      {"Einsum", "", "products",
       [](M& m) {
         return m.Ops("Einsum", {m.Parameter({2, 3, 4}), m.Parameter({2, 4, 5})},
                      {{"equation", String("bij, bjk -> bik")}});
       }},
      {"Einsum", "", "three_operands_summed_label",
       [](M& m) {
         return m.Ops("Einsum", {m.Parameter({2, 3}), m.Parameter({3, 4, 2}), m.Parameter({5})},
                      {{"equation", String("ab,bcd,e->ce")}});
       }},
      {"Einsum", "", "implicit",
       [](M& m) {
         return m.Ops("Einsum", {m.Parameter({2, 3}), m.Parameter({3, 4})}, {{"equation", String("ij,jk")}});
       }},
      {"Einsum", "", "to_a_scalar",
       [](M& m) {
         return m.Ops("Einsum", {m.Parameter({2, 3})}, {{"equation", String("ij->")}});
       }},
  };
}

}  // namespace pipec
