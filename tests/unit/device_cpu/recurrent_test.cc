// RNN, GRU and LSTM against ONNX's formulas written out for one sample, one direction and one step at a time:
// every direction, both layouts, sequences of different lengths, and the options of each op.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "tests/unit/device_cpu/kernel_call.h"

namespace pipec {
namespace {

constexpr int64_t kSteps = 5, kBatch = 3, kInput = 4, kHidden = 3;

using Row = std::vector<double>;

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

struct Options {
  std::string op;
  int64_t gates;
  std::string direction;
  int64_t layout = 0;
  bool lengths = false, bias = true, initial = true, peephole = false, before_reset = false,
       input_forget = false;
  float clip = 0;

  int64_t directions() const { return direction == "bidirectional" ? 2 : 1; }
  std::string Name() const {
    return absl::StrCat(op, " ", direction, " layout ", layout, " lengths ", lengths, " bias ", bias,
                        " peephole ", peephole, " before_reset ", before_reset, " clip ", clip);
  }
};

// The operands of one direction.
struct Weights {
  Row w, r, b, p;

  // Gate g of unit j: x and h through the weights, with both biases or without the recurrent one.
  double FromX(int64_t g, int64_t j, const Row& x) const {
    double sum = b.empty() ? 0 : b[g * kHidden + j];
    for (int64_t i = 0; i < kInput; ++i) sum += w[(g * kHidden + j) * kInput + i] * x[i];
    return sum;
  }
  double FromH(int64_t gates, int64_t g, int64_t j, const Row& h) const {
    double sum = b.empty() ? 0 : b[(gates + g) * kHidden + j];
    for (int64_t i = 0; i < kHidden; ++i) sum += r[(g * kHidden + j) * kHidden + i] * h[i];
    return sum;
  }
};

// One step of one sample: new h and c.
void Step(const Options& o, const Weights& w, const Row& x, Row& h, Row& c) {
  const auto clipped = [&](double e) {
    return o.clip > 0 ? std::min<double>(o.clip, std::max<double>(-o.clip, e)) : e;
  };
  const auto gate = [&](int64_t g, int64_t j) { return w.FromX(g, j, x) + w.FromH(o.gates, g, j, h); };
  Row next(kHidden);
  if (o.op == "RNN") {
    for (int64_t j = 0; j < kHidden; ++j) next[j] = std::tanh(clipped(gate(0, j)));
  } else if (o.op == "GRU") {
    Row reset(kHidden);
    for (int64_t j = 0; j < kHidden; ++j) reset[j] = Sigmoid(clipped(gate(1, j)));
    Row kept(kHidden);
    for (int64_t j = 0; j < kHidden; ++j) kept[j] = reset[j] * h[j];
    for (int64_t j = 0; j < kHidden; ++j) {
      const double h_part = o.before_reset ? reset[j] * w.FromH(3, 2, j, h) : w.FromH(3, 2, j, kept);
      const double z = Sigmoid(clipped(gate(0, j))), n = std::tanh(clipped(w.FromX(2, j, x) + h_part));
      next[j] = (1 - z) * n + z * h[j];
    }
  } else {
    const auto peep = [&](int64_t g, int64_t j, const Row& cell) {
      return w.p.empty() ? 0 : w.p[g * kHidden + j] * cell[j];
    };
    Row cell(kHidden);
    for (int64_t j = 0; j < kHidden; ++j) {
      const double i = Sigmoid(clipped(gate(0, j) + peep(0, j, c)));
      const double f = o.input_forget ? 1 - i : Sigmoid(clipped(gate(2, j) + peep(2, j, c)));
      cell[j] = f * c[j] + i * std::tanh(clipped(gate(3, j)));
    }
    for (int64_t j = 0; j < kHidden; ++j) {
      next[j] = Sigmoid(clipped(gate(1, j) + peep(1, j, cell))) * std::tanh(clipped(cell[j]));
    }
    c = cell;
  }
  h = next;
}

Row Part(const Row& all, int64_t part, int64_t size) {
  return all.empty() ? Row() : Row(all.begin() + part * size, all.begin() + (part + 1) * size);
}

class RecurrentTest : public ::testing::TestWithParam<DType> {
 protected:
  void Check(const Options& o) {
    const DType dtype = GetParam();
    const int64_t d = o.directions(), rows = o.gates * kHidden;
    const bool lstm = o.op == "LSTM", batch_first = o.layout == 1;
    const Shape x_shape = batch_first ? Shape{kBatch, kSteps, kInput} : Shape{kSteps, kBatch, kInput};
    const Shape state = batch_first ? Shape{kBatch, d, kHidden} : Shape{d, kBatch, kHidden};
    const Shape y_shape = batch_first ? Shape{kBatch, kSteps, d, kHidden} : Shape{kSteps, d, kBatch, kHidden};
    const Tensor x = Random(dtype, x_shape, 1), w = Random(dtype, {d, rows, kInput}, 2, -1, 1),
                 r = Random(dtype, {d, rows, kHidden}, 3, -1, 1), b = Random(dtype, {d, 2 * rows}, 4, -1, 1),
                 h0 = Random(dtype, state, 5), c0 = Random(dtype, state, 6),
                 p = Random(dtype, {d, 3 * kHidden}, 7);
    const Row lengths = {2, 5, 0};

    KernelCall call(o.op, "");
    call.Attr("direction", o.direction)
        .Attr("layout", o.layout)
        .Attr("hidden_size", kHidden)
        .In(x)
        .In(w)
        .In(r);
    if (o.clip > 0) call.Attr("clip", o.clip);
    if (o.before_reset) call.Attr("linear_before_reset", int64_t{1});
    if (o.input_forget) call.Attr("input_forget", int64_t{1});
    o.bias ? call.In(b) : call.NoIn();
    o.lengths ? call.In(Make(DType::kInt32, {kBatch}, lengths)) : call.NoIn();
    o.initial ? call.In(h0) : call.NoIn();
    if (lstm) o.initial ? call.In(c0) : call.NoIn();
    if (o.peephole) call.In(p);
    call.Out(dtype, y_shape).Out(dtype, state);
    if (lstm) call.Out(dtype, state);

    const Row xs = Values(x), ws = Values(w), rs = Values(r), bs = Values(b), ps = Values(p), hs = Values(h0),
              cs = Values(c0);
    Row y(NumElements(y_shape)), y_h(NumElements(state)), y_c(NumElements(state));
    for (int64_t dir = 0; dir < d; ++dir) {
      const Weights weights{Part(ws, dir, rows * kInput), Part(rs, dir, rows * kHidden),
                            o.bias ? Part(bs, dir, 2 * rows) : Row(),
                            o.peephole ? Part(ps, dir, 3 * kHidden) : Row()};
      for (int64_t n = 0; n < kBatch; ++n) {
        const int64_t at = batch_first ? n * d + dir : dir * kBatch + n;
        Row h = o.initial ? Part(hs, at, kHidden) : Row(kHidden),
            c = o.initial ? Part(cs, at, kHidden) : Row(kHidden);
        const int64_t length = o.lengths ? static_cast<int64_t>(lengths[n]) : kSteps;
        for (int64_t s = 0; s < length; ++s) {
          const int64_t t = o.direction == "reverse" || dir == 1 ? length - 1 - s : s;
          Step(o, weights, Part(xs, batch_first ? n * kSteps + t : t * kBatch + n, kInput), h, c);
          const int64_t to = batch_first ? (n * kSteps + t) * d + dir : (t * d + dir) * kBatch + n;
          std::copy(h.begin(), h.end(), y.begin() + to * kHidden);
        }
        std::copy(h.begin(), h.end(), y_h.begin() + at * kHidden);
        std::copy(c.begin(), c.end(), y_c.begin() + at * kHidden);
      }
    }
    ExpectNear(call.Get(0), y, Tolerance(dtype), o.Name());
    ExpectNear(call.Get(1), y_h, Tolerance(dtype), o.Name());
    if (lstm) ExpectNear(call.Get(2), y_c, Tolerance(dtype), o.Name());
    const std::string alone = call.Bytes();
    EXPECT_EQ(alone, call.Threads(3).Bytes()) << "the number of threads shows";
  }
};

TEST_P(RecurrentTest, FollowsTheFormulas) {
  const std::pair<const char*, int64_t> ops[] = {{"RNN", 1}, {"GRU", 3}, {"LSTM", 4}};
  for (const auto& [op, gates] : ops) {
    for (const char* direction : {"forward", "reverse", "bidirectional"}) {
      for (int64_t layout : {0, 1}) {
        for (bool lengths : {false, true}) {
          for (bool option : {false, true}) {
            Options o{op, gates, direction, layout, lengths};
            o.bias = o.initial = lengths || option;
            o.before_reset = option && o.op == "GRU";
            o.peephole = option && o.op == "LSTM";
            o.clip = lengths ? 0.5f : 0;
            Check(o);
          }
        }
      }
    }
  }
  Options coupled{"LSTM", 4, "bidirectional", 1, true};
  coupled.input_forget = true;
  Check(coupled);
}

TEST_P(RecurrentTest, EachDirectionHasItsActivations) {
  KernelCall call("RNN", "");
  call.Attr("direction", std::string("bidirectional"))
      .Attr("activations", std::vector<std::string>{"Affine", "LeakyRelu"})
      .Attr("activation_alpha", std::vector<float>{3, 0.25f})
      .Attr("activation_beta", std::vector<float>{1});
  call.In(Make(GetParam(), {1, 1, 1}, {-2}))
      .In(Make(GetParam(), {2, 1, 1}, {1, 1}))
      .In(Make(GetParam(), {2, 1, 1}, {0, 0}));
  call.NoOut().Out(GetParam(), {2, 1, 1});
  ExpectNear(call.Get(1), {-5, -0.5}, 0);
}

TEST_P(RecurrentTest, WhatDoesNotFitIsRefused) {
  const auto call = [] {
    KernelCall call("LSTM", "");
    call.In(Random(GetParam(), {2, 1, 3}, 1))
        .In(Random(GetParam(), {1, 8, 3}, 2))
        .In(Random(GetParam(), {1, 8, 2}, 3));
    return call.Out(GetParam(), {2, 1, 1, 2});
  };
  EXPECT_THAT(call().Attr("hidden_size", int64_t{5}).Error(), ::testing::HasSubstr("hidden_size is 5"));
  EXPECT_THAT(call().Attr("direction", std::string("up")).Error(), ::testing::HasSubstr("direction is up"));
  EXPECT_THAT(call().Attr("activations", std::vector<std::string>{"Tanh"}).Error(),
              ::testing::HasSubstr("1 names, wanted 3"));
  EXPECT_THAT(call().Attr("activations", std::vector<std::string>{"Tanh", "Tan", "Tanh"}).Error(),
              ::testing::HasSubstr("unknown activation 'Tan'"));
  EXPECT_THAT(call().NoIn().In(Make(DType::kInt32, {1}, {3})).Error(),
              ::testing::HasSubstr("sequence length 3"));
}

INSTANTIATE_TEST_SUITE_P(Floats, RecurrentTest, ::testing::Values(DType::kFloat32, DType::kFloat64));

}  // namespace
}  // namespace pipec
