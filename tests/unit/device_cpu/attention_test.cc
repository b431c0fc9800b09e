// Attention block by block against attention with all weights, element by element in float64.
#include <cmath>
#include <limits>

#include "kernel_call.h"
#include "runtime/device/cpu/kernels/attention_blocks.h"

namespace pipec {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Problem {
  int64_t heads, rows, columns, depth, width;
  double scale = 0.5, fill = -kInfinity;
  bool causal = false, zero_rows = false;
  // Of shape [rows or 1, columns or 1], of every head alike.
  DType mask_type = DType::kUndefined;
  Shape mask_shape;
  std::vector<double> mask;
};

struct Operands {
  std::vector<double> q, k, v, d_o;
  explicit Operands(const Problem& p)
      : q(RandomValues(p.heads * p.rows * p.depth, 1)),
        k(RandomValues(p.heads * p.columns * p.depth, 2)),
        v(RandomValues(p.heads * p.columns * p.width, 3)),
        d_o(RandomValues(p.heads * p.rows * p.width, 4)) {}
};

struct Results {
  std::vector<double> o, logs, dq, dk, dv;
};

Results Wanted(const Problem& p, const Operands& x) {
  Results r{std::vector<double>(x.d_o.size()), std::vector<double>(p.heads * p.rows),
            std::vector<double>(x.q.size()), std::vector<double>(x.k.size()),
            std::vector<double>(x.v.size())};
  std::vector<double> w(p.columns), dw(p.columns);
  for (int64_t row = 0; row < p.heads * p.rows; ++row) {
    const int64_t head = row / p.rows, i = row % p.rows;
    const double *const q = &x.q[row * p.depth], *const d_o = &x.d_o[row * p.width];
    const auto key = [&](int64_t j) { return (head * p.columns + j) * p.depth; };
    const auto value = [&](int64_t j) { return (head * p.columns + j) * p.width; };
    const auto mask = [&](int64_t j) {
      return p.mask[(p.mask_shape[0] == 1 ? 0 : i) * p.mask_shape[1] + (p.mask_shape[1] == 1 ? 0 : j)];
    };
    double sum = 0, along = 0;
    for (int64_t j = 0; j < p.columns; ++j) {
      double s = 0;
      for (int64_t e = 0; e < p.depth; ++e) s += p.scale * q[e] * x.k[key(j) + e];
      if (p.causal && j > i) s = -kInfinity;
      if (p.mask_type == DType::kBool) s = mask(j) != 0 ? s : p.fill;
      if (!p.mask.empty() && p.mask_type != DType::kBool) s += mask(j);
      sum += w[j] = std::exp(s);
    }
    r.logs[row] = std::log(sum);
    for (int64_t j = 0; j < p.columns; ++j) {
      w[j] = p.zero_rows && sum == 0 ? 0 : w[j] / sum;
      dw[j] = 0;
      for (int64_t e = 0; e < p.width; ++e) {
        r.o[row * p.width + e] += w[j] * x.v[value(j) + e];
        r.dv[value(j) + e] += w[j] * d_o[e];
        dw[j] += d_o[e] * x.v[value(j) + e];
      }
      along += w[j] * dw[j];
    }
    for (int64_t j = 0; j < p.columns; ++j) {
      const bool learns = p.mask_type != DType::kBool || mask(j) != 0;
      const double ds = learns ? p.scale * w[j] * (dw[j] - along) : 0;
      for (int64_t e = 0; e < p.depth; ++e) {
        r.dq[row * p.depth + e] += ds * x.k[key(j) + e];
        r.dk[key(j) + e] += ds * q[e];
      }
    }
  }
  return r;
}

void AddMask(KernelCall& call, const Problem& p, DType dtype) {
  if (p.mask.empty()) return;
  call.In(Make(p.mask_type == DType::kBool ? DType::kBool : dtype, p.mask_shape, p.mask));
  call.Attr("fill", static_cast<float>(p.fill));
}

KernelCall Common(const char* op, const Problem& p) {
  KernelCall call(op, kHelpers);
  call.Attr("scale", static_cast<float>(p.scale)).Attr("causal", int64_t{p.causal});
  call.Attr("zero_rows", int64_t{p.zero_rows});
  return call;
}

KernelCall Forward(const Problem& p, const Operands& x, DType dtype) {
  KernelCall call = Common("FusedAttention", p);
  call.In(Make(dtype, {p.heads, p.rows, p.depth}, x.q)).In(Make(dtype, {p.heads, p.columns, p.depth}, x.k));
  call.In(Make(dtype, {p.heads, p.columns, p.width}, x.v));
  AddMask(call, p, dtype);
  call.Out(dtype, {p.heads, p.rows, p.width}).Out(dtype, {p.heads, p.rows});
  return call;
}

KernelCall Backward(const Problem& p, const Operands& x, const Results& r, DType dtype) {
  KernelCall call = Common("FusedAttentionGrad", p);
  const Shape o = {p.heads, p.rows, p.width}, q = {p.heads, p.rows, p.depth},
              k = {p.heads, p.columns, p.depth}, v = {p.heads, p.columns, p.width};
  call.In(Make(dtype, o, x.d_o)).In(Make(dtype, q, x.q)).In(Make(dtype, k, x.k)).In(Make(dtype, v, x.v));
  call.In(Make(dtype, o, r.o)).In(Make(dtype, {p.heads, p.rows}, r.logs));
  AddMask(call, p, dtype);
  call.Out(dtype, q).Out(dtype, k).Out(dtype, v);
  return call;
}

void Check(const Problem& p) {
  const Operands x(p);
  const Results wanted = Wanted(p, x);
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    const double tolerance = 10 * Tolerance(dtype);
    for (int threads : {1, 2}) {
      const KernelCall forward = Forward(p, x, dtype).Threads(threads);
      ExpectNear(forward.Get(0), wanted.o, tolerance, "O");
      if (!p.zero_rows) ExpectNear(forward.Get(1), wanted.logs, tolerance, "log_sum_exp");
      const KernelCall backward = Backward(p, x, wanted, dtype).Threads(threads);
      ExpectNear(backward.Get(0), wanted.dq, tolerance, "dQ");
      ExpectNear(backward.Get(1), wanted.dk, tolerance, "dK");
      ExpectNear(backward.Get(2), wanted.dv, tolerance, "dV");
    }
  }
}

TEST(FusedAttention, SomeHeadsAtOnce) {
  Check({3, 7, 5, 4, 6});
  Check({.heads = 70, .rows = 64, .columns = 64, .depth = 4, .width = 4, .causal = true});
}

// Blocks of 128 rows add to the gradients of keys and values; of causal ones each has its own columns.
TEST(FusedAttention, SomeRowsOfAHeadAtOnce) {
  Check({2, 300, 9, 4, 3});
  Check({.heads = 2, .rows = 300, .columns = 300, .depth = 4, .width = 3, .causal = true});
  Check({.heads = 1, .rows = 1100, .columns = 1100, .depth = 2, .width = 3, .causal = true});
}

TEST(FusedAttention, Masks) {
  const std::vector<double> row = {0, -1, 0.5, -kInfinity, 1}, seen = {1, 1, 0, 1, 0};
  const auto of = [](DType type, Shape shape, std::vector<double> mask) {
    return Problem{.heads = 3,
                   .rows = 4,
                   .columns = 5,
                   .depth = 4,
                   .width = 2,
                   .mask_type = type,
                   .mask_shape = shape,
                   .mask = std::move(mask)};
  };
  Check(of(DType::kFloat32, {1, 5}, row));
  Check(of(DType::kFloat32, {4, 1}, {0, 1, 2, 3}));
  Check(of(DType::kFloat32, {4, 5}, RandomValues(20, 9)));
  Check(of(DType::kBool, {1, 5}, seen));
  Check(of(DType::kBool, {4, 5}, {1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 0, 1, 0, 1, 0, 1, 0, 0, 0}));
  Problem finite = of(DType::kBool, {4, 1}, {1, 0, 1, 0});
  finite.fill = -0.5;
  Check(finite);
}

TEST(FusedAttention, ARowWithoutColumns) {
  Problem p{.heads = 2,
            .rows = 3,
            .columns = 2,
            .depth = 4,
            .width = 3,
            .zero_rows = true,
            .mask_type = DType::kBool,
            .mask_shape = {3, 1},
            .mask = {1, 0, 1}};
  Check(p);
  p.zero_rows = false;
  const Operands x(p);
  const std::vector<double> o = Forward(p, x, DType::kFloat32).Get();
  EXPECT_TRUE(std::isnan(o[3]));
  EXPECT_FALSE(std::isnan(o[0]));
}

// No exponential of a score alone: the largest of a row is taken off first.
TEST(FusedAttention, ScoresOfAnySize) {
  Problem p{.heads = 1, .rows = 2, .columns = 3, .depth = 1, .width = 1};
  p.scale = 1;
  Operands x(p);
  x.q = {200, -200};
  x.k = {1, 2, 3};
  x.v = {1, 2, 4};
  ExpectNear(Forward(p, x, DType::kFloat32).Get(0), {4, 1}, 1e-6);
  ExpectNear(Forward(p, x, DType::kFloat32).Get(1), {600, -200}, 1e-6);
}

// The mask of a head is where its axes say.
TEST(FusedAttention, MasksOfHeads) {
  KernelCall call("FusedAttention", kHelpers);
  const Shape shape = {2, 3, 2, 1};
  call.In(Make(DType::kFloat32, shape, std::vector<double>(12, 0)));
  call.In(Make(DType::kFloat32, shape, std::vector<double>(12, 0)));
  call.In(Make(DType::kFloat32, shape, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
  call.In(Make(DType::kBool, {2, 1, 1, 2}, {1, 0, 0, 1})).Out(DType::kFloat32, shape);
  EXPECT_EQ(call.Get(), (std::vector<double>{1, 1, 3, 3, 5, 5, 8, 8, 10, 10, 12, 12}));
}

TEST(FusedAttention, RefusesWhatDoesNotBelongTogether) {
  const auto error = [](Shape q, Shape k, Shape v, Shape mask, Shape o, bool causal = false) {
    KernelCall call("FusedAttention", kHelpers);
    call.In(Random(DType::kFloat32, q, 1))
        .In(Random(DType::kFloat32, k, 1))
        .In(Random(DType::kFloat32, v, 1));
    return call.In(Random(DType::kFloat32, mask, 1))
        .Attr("causal", int64_t{causal})
        .Out(DType::kFloat32, o)
        .Error();
  };
  EXPECT_EQ(error({2, 3, 4}, {2, 5, 4}, {2, 5, 6}, {5}, {2, 3, 6}), "");
  EXPECT_THAT(error({2, 3, 4}, {2, 5, 3}, {2, 5, 6}, {5}, {2, 3, 6}),
              testing::HasSubstr("wanted float32[2,5,4]"));
  EXPECT_THAT(error({2, 3, 4}, {2, 5, 4}, {2, 5, 6}, {4}, {2, 3, 6}),
              testing::HasSubstr("broadcasts to [2,3,5]"));
  EXPECT_THAT(error({2, 3, 4}, {2, 5, 4}, {2, 5, 6}, {5}, {2, 3, 4}),
              testing::HasSubstr("wanted float32[2,3,6]"));
  EXPECT_THAT(error({2, 3, 4}, {2, 5, 4}, {2, 5, 6}, {5}, {2, 3, 6}, true),
              testing::HasSubstr("causal with 3 rows"));
  EXPECT_THAT(error({2, 0, 4}, {2, 5, 4}, {2, 5, 6}, {5}, {2, 0, 6}), testing::HasSubstr("an axis is empty"));
}

// Every row of every head once, with all columns that it may see; the first block of a head has all columns.
TEST(AttentionBlocks, CoverAllRows) {
  for (const int64_t rows : {1, 16, 17, 100, 1000}) {
    for (const bool causal : {false, true}) {
      Attention a;
      a.heads = {2, 3};
      a.rows = rows;
      a.columns = causal ? rows : 50;
      a.causal = causal;
      std::vector<int> seen(6 * rows);
      std::vector<bool> written(6);
      for (const cpu::AttentionBlock& block :
             cpu::AttentionBlocks(a, {.rows = 40, .weights = 2000, .least_rows = 8})) {
        EXPECT_LE(block.heads * block.rows, std::max<int64_t>(40, block.heads * rows));
        if (block.heads > 1) {
          EXPECT_LE(block.weights(), 2000);
        }
        for (int64_t head = block.head; head < block.head + block.heads; ++head) {
          EXPECT_EQ(block.first, !written[head]);
          if (block.first) {
            EXPECT_EQ(block.columns, a.columns);
          }
          written[head] = true;
          for (int64_t row = block.row; row < block.row + block.rows; ++row) {
            ++seen[head * rows + row];
            EXPECT_GE(block.columns, causal ? row + 1 : a.columns);
          }
        }
      }
      EXPECT_EQ(seen, std::vector<int>(6 * rows, 1)) << rows << causal;
    }
  }
}

}  // namespace
}  // namespace pipec
