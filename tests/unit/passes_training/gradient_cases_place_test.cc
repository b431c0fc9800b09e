// Ops that read and write at computed places, and those along an axis.
#include "gradient_cases.h"

namespace pipec {

std::vector<GradientCase> PlaceCases() {
  using M = SmallModel;
  return {
      {"GatherElements", "", "duplicates",
       [](M& m) {
         return m.Ops("GatherElements", {m.Parameter({3, 4}), m.Ints({2, 3}, {0, 2, 2, -1, 2, 1})},
                      {{"axis", int64_t{0}}});
       }},
      {"GatherElements", "", "last_axis",
       [](M& m) {
         return m.Ops("GatherElements", {m.Parameter({2, 3}), m.Ints({2, 4}, {0, 2, 2, -1, 1, 1, 1, 0})},
                      {{"axis", int64_t{-1}}});
       }},
      {"GatherND", "", "slices",
       [](M& m) {
         return m.Ops("GatherND", {m.Parameter({3, 4}), m.Ints({3, 1}, {2, 0, 2})});
       }},
      {"GatherND", "", "elements",
       [](M& m) {
         return m.Ops("GatherND", {m.Parameter({3, 4}), m.Ints({3, 2}, {2, 1, 0, -1, 2, 1})});
       }},
      {"GatherND", "", "batched",
       [](M& m) {
         return m.Ops("GatherND", {m.Parameter({2, 2, 3}), m.Ints({2, 2, 1}, {0, 1, 1, 1})},
                      {{"batch_dims", int64_t{1}}});
       }},
      {"GatherND", "", "twice_batched",
       [](M& m) {
         return m.Ops("GatherND", {m.Parameter({2, 2, 3}), m.Ints({2, 2, 2, 1}, {0, 1, 2, 2, 0, 0, 1, 2})},
                      {{"batch_dims", int64_t{2}}});
       }},
      {"ScatterElements", "", "replaced",
       [](M& m) {
         return m.Ops("ScatterElements", {m.Parameter({3, 3}), m.Ints({2, 2}, {0, 2, 1, -3}), m.Parameter({2, 2})},
                      {{"axis", int64_t{1}}});
       }},
      {"ScatterElements", "", "added",
       [](M& m) {
         return m.Ops("ScatterElements", {m.Parameter({3, 3}), m.Ints({2, 2}, {0, 2, 0, 2}), m.Parameter({2, 2})},
                      {{"reduction", std::string("add")}});
       }},
      {"ScatterElements", "", "greatest",
       [](M& m) {
         return m.Ops("ScatterElements", {m.Parameter({3, 3}), m.Ints({2, 2}, {0, 2, 0, 2}), m.Parameter({2, 2})},
                      {{"reduction", std::string("max")}});
       }},
      {"ScatterND", "", "replaced",
       [](M& m) {
         return m.Ops("ScatterND", {m.Parameter({4, 2}), m.Ints({2, 1}, {3, 0}), m.Parameter({2, 2})});
       }},
      {"ScatterND", "", "added",
       [](M& m) {
         return m.Ops("ScatterND", {m.Parameter({4, 2}), m.Ints({3, 2}, {3, 1, 0, 0, 3, 1}), m.Parameter({3})},
                      {{"reduction", std::string("add")}});
       }},
      {"ScatterND", "", "least",
       [](M& m) {
         return m.Ops("ScatterND", {m.Parameter({4, 2}), m.Ints({3, 1}, {3, 0, 3}), m.Parameter({3, 2})},
                      {{"reduction", std::string("min")}});
       }},
      {"TopK", "", "values",
       [](M& m) {
         return std::vector<Value*>{
             m.Ops("TopK", {m.Parameter({2, 5, 2}), m.Ints({2})}, {{"axis", int64_t{1}}}, "", 2)[0]};
       }},
      {"TopK", "", "smallest",
       [](M& m) {
         return std::vector<Value*>{
             m.Ops("TopK", {m.Parameter({2, 5}), m.Ints({3})}, {{"largest", int64_t{0}}}, "", 2)[0]};
       }},

      {"CumSum", "", "plain",
       [](M& m) {
         return m.Ops("CumSum", {m.Parameter({2, 4}), m.Ints({}, {-1})});
       }},
      {"CumSum", "", "exclusive_reverse",
       [](M& m) {
         return m.Ops("CumSum", {m.Parameter({3, 2}), m.Ints({}, {0})},
                      {{"exclusive", int64_t{1}}, {"reverse", int64_t{1}}});
       }},
      {"ReverseSequence", "", "",
       [](M& m) {
         return m.Ops("ReverseSequence", {m.Parameter({4, 3, 2}), m.Ints({3, 1, 4})},
                      {{"time_axis", int64_t{0}}, {"batch_axis", int64_t{1}}});
       }},
      {"Pad", "", "constant",
       [](M& m) {
         return m.Ops("Pad", {m.Parameter({2, 3}), m.Ints({1, 0, 0, 2}), m.Parameter({})});
       }},
      {"Pad", "", "cropped",
       [](M& m) {
         return m.Ops("Pad", {m.Parameter({3, 4}), m.Ints({-1, 2}), m.Parameter({}), m.Ints({-1})});
       }},
      {"Pad", "", "edge",
       [](M& m) {
         return m.Ops("Pad", {m.Parameter({2, 3}), m.Ints({1, 3, 0, 2})}, {{"mode", std::string("edge")}});
       }},
      {"Pad", "", "reflect",
       [](M& m) {
         return m.Ops("Pad", {m.Parameter({2, 4}), m.Ints({2, 3}), nullptr, m.Ints({1})},
                      {{"mode", std::string("reflect")}});
       }},
      {"Pad", "", "wrap",
       [](M& m) {
         return m.Ops("Pad", {m.Parameter({2, 3}), m.Ints({1, 2, 1, 1})}, {{"mode", std::string("wrap")}});
       }},
  };
}

}  // namespace pipec
