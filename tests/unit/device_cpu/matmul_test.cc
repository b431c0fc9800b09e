#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>

#include "kernel_call.h"

namespace pipec {
namespace {

using testing::HasSubstr;

// NumPy's matmul, element by element from the definition; operands of rank 2 or more, `t`: transpose the last
// two axes.
std::vector<double> Reference(const Tensor& a, bool ta, const Tensor& b, bool tb, const Shape& y) {
  const std::vector<double> a_values = Values(a), b_values = Values(b);
  const auto at = [](const Shape& shape, const std::vector<double>& values, bool t, const std::vector<int64_t>& index) {
    // index: like y's, with the matrix position last; missing and length-1 axes broadcast.
    std::vector<int64_t> own(index.end() - shape.size(), index.end());
    if (t) std::swap(own[own.size() - 1], own[own.size() - 2]);
    int64_t flat = 0;
    for (size_t i = 0; i < shape.size(); ++i) {
      flat = flat * shape[i] + (i + 2 < shape.size() && shape[i] == 1 ? 0 : own[i]);
    }
    return values[flat];
  };
  const int64_t k = a.type.shape[a.type.shape.size() - (ta ? 2 : 1)];
  std::vector<double> result;
  std::vector<int64_t> index(y.size());
  for (int64_t flat = 0; flat < NumElements(y); ++flat) {
    for (int64_t i = y.size(), rest = flat; i-- > 0; rest /= y[i]) index[i] = rest % y[i];
    double sum = 0;
    for (int64_t l = 0; l < k; ++l) {
      std::vector<int64_t> a_index = index, b_index = index;
      a_index.back() = l;
      b_index[b_index.size() - 2] = l;
      sum += at(a.type.shape, a_values, ta, a_index) * at(b.type.shape, b_values, tb, b_index);
    }
    result.push_back(sum);
  }
  return result;
}

Shape Swapped(Shape shape, bool swap) {
  if (swap) std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
  return shape;
}

TEST(MatMul, BroadcastsBatchesAndTransposes) {
  struct Case {
    Shape a, b, y;
  };
  const std::vector<Case> cases = {{{3, 4}, {4, 5}, {3, 5}},
                                   {{1, 1}, {1, 1}, {1, 1}},
                                   {{2, 3, 4}, {4, 5}, {2, 3, 5}},
                                   {{3, 4}, {2, 4, 5}, {2, 3, 5}},
                                   {{2, 3, 3, 4}, {2, 3, 4, 5}, {2, 3, 3, 5}},
                                   {{2, 1, 3, 4}, {3, 4, 5}, {2, 3, 3, 5}},
                                   {{2, 3, 3, 4}, {2, 1, 4, 5}, {2, 3, 3, 5}},
                                   {{2, 3, 2, 3, 4}, {2, 1, 2, 4, 5}, {2, 3, 2, 3, 5}},
                                   {{1, 1, 3, 4}, {1, 1, 4, 5}, {1, 1, 3, 5}},
                                   {{33, 70}, {70, 17}, {33, 17}}};
  for (const Case& c : cases) {
    for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
      for (int transposed = 0; transposed < 4; ++transposed) {
        const bool ta = transposed & 1, tb = transposed & 2;
        const Tensor a = Random(dtype, Swapped(c.a, ta), 1), b = Random(dtype, Swapped(c.b, tb), 2);
        std::vector<double> wanted = Reference(a, ta, b, tb, c.y);
        for (double& value : wanted) value *= 0.5;
        KernelCall call("FusedMatMul", kHelpers);
        call.In(a)
            .In(b)
            .Out(dtype, c.y)
            .Attr("trans_a", int64_t{ta})
            .Attr("trans_b", int64_t{tb})
            .Attr("alpha", 0.5f);
        for (int threads : {1, 2, 3}) {
          ExpectNear(call.Threads(threads).Get(), wanted, Tolerance(dtype), ToString(c.a) + ToString(c.b));
        }
        EXPECT_EQ(call.Bytes(), call.Misalign(dtype == DType::kFloat32 ? 4 : 8).Bytes());
      }
    }
  }
}

TEST(MatMul, TakesVectorsIntegersAndEmptyOperands) {
  const DType f = DType::kFloat32;
  const Tensor v = Make(f, {2}, {1, 2}), m = Make(f, {2, 3}, {1, 2, 3, 4, 5, 6}),
               w = Make(f, {3}, {1, 0, -1});
  EXPECT_THAT(KernelCall("MatMul", "").In(v).In(v).Out(f, {}).Get(), testing::ElementsAre(5));
  EXPECT_THAT(KernelCall("MatMul", "").In(v).In(m).Out(f, {3}).Get(), testing::ElementsAre(9, 12, 15));
  EXPECT_THAT(KernelCall("MatMul", "").In(m).In(w).Out(f, {2}).Get(), testing::ElementsAre(-2, -2));
  const Tensor batch = Make(f, {2, 2, 1}, {1, 2, 3, 4});
  EXPECT_THAT(KernelCall("MatMul", "").In(v).In(batch).Out(f, {2, 1}).Get(), testing::ElementsAre(5, 11));
  for (DType dtype : {DType::kInt32, DType::kInt64}) {
    const Tensor a = Make(dtype, {2, 2}, {1, 2, 3, 4}), b = Make(dtype, {2, 1}, {5, -6});
    EXPECT_THAT(KernelCall("MatMul", "").In(a).In(b).Out(dtype, {2, 1}).Get(), testing::ElementsAre(-7, -9));
  }
  EXPECT_THAT(KernelCall("MatMul", "").In(Make(f, {2, 0}, {})).In(Make(f, {0, 2}, {})).Out(f, {2, 2}).Get(),
              testing::ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(KernelCall("MatMul", "").In(Make(f, {0, 2}, {})).In(m).Out(f, {0, 3}).Get(),
              testing::ElementsAre());
}

TEST(MatMul, NamesShapesThatDoNotFit) {
  const DType f = DType::kFloat32;
  const Tensor a = Random(f, {2, 3}, 1), b = Random(f, {4, 2}, 2);
  EXPECT_THAT(KernelCall("MatMul", "").In(a).In(b).Out(f, {2, 2}).Error(),
              testing::AllOf(HasSubstr("float32[2,3]"), HasSubstr("float32[4,2]")));
  EXPECT_THAT(KernelCall("MatMul", "").In(a).In(Random(f, {3, 2}, 2)).Out(f, {2, 3}).Error(),
              HasSubstr("wanted float32[2,2]"));
  EXPECT_THAT(KernelCall("MatMul", "")
                  .In(Random(f, {2, 2, 2}, 1))
                  .In(Random(f, {3, 2, 2}, 1))
                  .Out(f, {3, 2, 2})
                  .Error(),
              HasSubstr("do not broadcast"));
}

TEST(MatMul, AddsABiasToEachRow) {
  struct Case {
    Shape a, b, y;
  };
  const std::vector<Case> cases = {{{3, 4}, {4, 5}, {3, 5}},          {{2, 3, 4}, {4, 5}, {2, 3, 5}},
                                   {{2, 3, 4}, {2, 4, 5}, {2, 3, 5}}, {{33, 70}, {70, 17}, {33, 17}},
                                   {{3, 4}, {4, 1}, {3, 1}},          {{3, 0}, {0, 5}, {3, 5}},
                                   {{0, 4}, {4, 5}, {0, 5}}};
  for (const Case& c : cases) {
    for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
      for (float alpha : {1.0f, 0.5f}) {
        for (bool tb : {false, true}) {
          const int64_t n = c.y.back();
          const Tensor a = Random(dtype, c.a, 1), b = Random(dtype, Swapped(c.b, tb), 2),
                       bias = Random(dtype, {n}, 3);
          std::vector<double> wanted = Reference(a, false, b, tb, c.y);
          const std::vector<double> added = Values(bias);
          for (size_t i = 0; i < wanted.size(); ++i) wanted[i] = alpha * wanted[i] + added[i % n];
          KernelCall call("FusedMatMul", kHelpers);
          call.In(a).In(b).In(bias).Out(dtype, c.y).Attr("trans_b", int64_t{tb}).Attr("alpha", alpha);
          ExpectNear(call.Threads(2).Get(), wanted, Tolerance(dtype), ToString(c.a) + ToString(c.b));
        }
      }
    }
  }
  const DType f = DType::kFloat32;
  const Tensor a = Random(f, {2, 3}, 1), b = Random(f, {3, 4}, 2);
  EXPECT_THAT(KernelCall("FusedMatMul", kHelpers).In(a).In(b).In(Random(f, {2, 4}, 3)).Out(f, {2, 4}).Error(),
              HasSubstr("wanted float32[4]"));
}

// Gelu's tanh form and its slope.
double GeluTanh(double x) { return std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)); }
double Gelu(double x) { return x * (1 + GeluTanh(x)) / 2; }
double GeluSlope(double x) {
  const double t = GeluTanh(x);
  return (1 + t + x * (1 - t * t) * std::sqrt(2 / std::numbers::pi) * (1 + 3 * 0.044715 * x * x)) / 2;
}

TEST(FusedMatMul, TakesGeluOfTheSum) {
  struct Case {
    Shape a, b, y;
  };
  for (const Case& c : {Case{{3, 4}, {4, 5}, {3, 5}}, Case{{2, 3, 4}, {2, 4, 5}, {2, 3, 5}},
                        Case{{9, 20}, {20, 17}, {9, 17}}, Case{{3, 0}, {0, 5}, {3, 5}}, Case{{0, 4}, {4, 5}, {0, 5}}}) {
    for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
      const int64_t n = c.y.back();
      const Tensor a = Random(dtype, c.a, 1), b = Random(dtype, c.b, 2), bias = Random(dtype, {n}, 3);
      const std::vector<double> product = Reference(a, false, b, false, c.y), added = Values(bias);
      for (float alpha : {1.0f, 0.5f}) {
        for (bool with_bias : {false, true}) {
          std::vector<double> wanted(product.size());
          for (size_t i = 0; i < wanted.size(); ++i)
            wanted[i] = Gelu(alpha * product[i] + (with_bias ? added[i % n] : 0));
          KernelCall call("FusedMatMul", kHelpers);
          call.In(a).In(b);
          if (with_bias) call.In(bias);
          if (!with_bias && alpha == 1) call.NoIn().NoIn();  // as good as none
          call.Out(dtype, c.y).Attr("alpha", alpha).Attr("activation", std::string("GeluTanh"));
          ExpectNear(call.Threads(2).Get(), wanted, 2 * Tolerance(dtype), ToString(c.a) + ToString(c.b));
        }
      }
    }
  }
}

TEST(FusedMatMul, TakesGelusSlopeAtAnotherOperand) {
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (int64_t k : {0, 4}) {
      const Tensor dz = Random(dtype, {3, k}, 1), w = Random(dtype, {5, k}, 2), x = Random(dtype, {3, 5}, 3);
      std::vector<double> wanted = Reference(dz, false, w, true, {3, 5});
      const std::vector<double> at = Values(x);
      for (size_t i = 0; i < wanted.size(); ++i) wanted[i] *= GeluSlope(at[i]);
      KernelCall call("FusedMatMul", kHelpers);
      call.In(dz).In(w).NoIn().In(x).Out(dtype, {3, 5}).Attr("trans_b", int64_t{1});
      ExpectNear(call.Attr("activation", std::string("GeluTanhGrad")).Get(), wanted, 2 * Tolerance(dtype));
    }
  }
}

// As product and gradient one after the other, to the bit.
TEST(FusedMatMul, IsTheGradientOfAProduct) {
  const DType f = DType::kFloat32;
  const Shape y = {65, 130};
  const Tensor a = Random(f, {65, 96}, 1), b = Random(f, {96, 130}, 2), x = Random(f, y, 4);
  KernelCall whole("FusedMatMul", kHelpers), product("FusedMatMul", kHelpers), gradient("GeluGrad", kHelpers);
  whole.In(a).In(b).NoIn().In(x).Out(f, y).Attr("activation", std::string("GeluTanhGrad"));
  const std::string between = product.In(a).In(b).Out(f, y).Bytes();
  Tensor dy = x;
  std::memcpy(dy.bytes.data(), between.data(), between.size());
  gradient.In(dy).In(x).Out(f, y).Attr("approximate", std::string("tanh"));
  EXPECT_EQ(whole.Bytes(), gradient.Bytes());
}

TEST(FusedMatMul, HidesNoNumberThatIsNone) {
  const DType f = DType::kFloat32;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor a = Make(f, {1, 1}, {nan}), one = Make(f, {1, 1}, {1});
  KernelCall gelu("FusedMatMul", kHelpers), gradient("FusedMatMul", kHelpers);
  gelu.In(a).In(one).Out(f, {1, 1}).Attr("activation", std::string("GeluTanh"));
  gradient.In(one).In(one).NoIn().In(a).Out(f, {1, 1}).Attr("activation", std::string("GeluTanhGrad"));
  EXPECT_TRUE(std::isnan(gelu.Get()[0]));
  EXPECT_TRUE(std::isnan(gradient.Get()[0]));
}

TEST(FusedMatMul, NamesOperandsThatItsActivationDoesNotTake) {
  const DType f = DType::kFloat32;
  const Tensor m = Random(f, {2, 2}, 1), v = Random(f, {2}, 2);
  const auto error = [&](const char* activation, int operands, const Tensor& x) {
    KernelCall call("FusedMatMul", kHelpers);
    call.In(m).In(m);
    if (operands > 2) call.NoIn();
    if (operands > 3) call.In(x);
    return call.Attr("activation", std::string(activation)).Out(f, {2, 2}).Error();
  };
  EXPECT_THAT(error("Relu", 2, m), HasSubstr("activation is 'Relu', wanted 'GeluTanh' or 'GeluTanhGrad'"));
  EXPECT_THAT(error("GeluTanhGrad", 2, m), HasSubstr("operand 3 is for activation 'GeluTanhGrad'"));
  EXPECT_THAT(error("GeluTanh", 4, m), HasSubstr("operand 3 is for activation 'GeluTanhGrad'"));
  EXPECT_THAT(error("GeluTanhGrad", 4, v), HasSubstr("wanted float32[2,2]"));
  KernelCall bias("FusedMatMul", kHelpers);
  bias.In(m).In(m).In(v).In(m).Attr("activation", std::string("GeluTanhGrad")).Out(f, {2, 2});
  EXPECT_THAT(bias.Error(), HasSubstr("and no bias"));
}

TEST(MatMulWeightGrad, IsAProductAndSumsOfRows) {
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (int64_t rows : {0, 1, 5, 200}) {
      for (int64_t n : {1, 6, 300}) {
        for (bool transposed : {false, true}) {
          const int64_t k = 7;
          const Tensor dy = Random(dtype, {rows, n}, 1), x = Random(dtype, {rows, k}, 2);
          const Shape shape = transposed ? Shape{n, k} : Shape{k, n};
          KernelCall call("MatMulWeightGrad", kHelpers);
          call.In(dy).In(x).Out(dtype, shape).Out(dtype, {n}).Attr("trans_b", int64_t{transposed});
          const std::string first = call.Threads(1).Bytes();
          EXPECT_EQ(first, call.Threads(3).Bytes());
          ExpectNear(call.Get(0), Reference(transposed ? dy : x, true, transposed ? x : dy, false, shape),
                     10 * Tolerance(dtype));
          std::vector<double> sums(n);
          const std::vector<double> terms = Values(dy);
          for (int64_t i = 0; i < rows * n; ++i) sums[i % n] += terms[i];
          ExpectNear(call.Get(1), sums, 10 * Tolerance(dtype));
        }
      }
    }
  }
  const DType f = DType::kFloat32;
  EXPECT_THAT(KernelCall("MatMulWeightGrad", kHelpers)
                  .In(Random(f, {3, 2}, 1))
                  .In(Random(f, {4, 5}, 2))
                  .Out(f, {5, 2})
                  .Out(f, {2})
                  .Error(),
              HasSubstr("as many rows"));
}

TEST(Gemm, AddsBroadcastC) {
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (int transposed = 0; transposed < 4; ++transposed) {
      const bool ta = transposed & 1, tb = transposed & 2;
      const Tensor a = Random(dtype, Swapped({3, 4}, ta), 1), b = Random(dtype, Swapped({4, 5}, tb), 2);
      const std::vector<double> product = Reference(a, ta, b, tb, {3, 5});
      for (const Shape& shape : std::vector<Shape>{{}, {1}, {5}, {1, 5}, {3, 1}, {3, 5}}) {
        for (float beta : {1.0f, 0.5f, 0.0f}) {
          const Tensor c = Random(dtype, shape, 3);
          const int64_t rows = shape.size() == 2 ? shape[0] : 1, columns = shape.empty() ? 1 : shape.back();
          std::vector<double> wanted(15);
          for (int i = 0; i < 15; ++i) {
            wanted[i] = 2 * product[i] + beta * Values(c)[(i / 5 % rows) * columns + i % 5 % columns];
          }
          KernelCall call("Gemm", "");
          call.In(a).In(b).In(c).Out(dtype, {3, 5}).Attr("alpha", 2.0f).Attr("beta", beta);
          call.Attr("transA", int64_t{ta}).Attr("transB", int64_t{tb});
          ExpectNear(call.Get(), wanted, Tolerance(dtype), ToString(shape));
        }
      }
      KernelCall call("Gemm", "");
      call.In(a).In(b).NoIn().Out(dtype, {3, 5}).Attr("transA", int64_t{ta}).Attr("transB", int64_t{tb});
      ExpectNear(call.Get(), product, Tolerance(dtype));
    }
  }
  const Tensor i = Make(DType::kInt32, {1, 1}, {3});
  EXPECT_THAT(KernelCall("Gemm", "").In(i).In(i).In(i).Out(DType::kInt32, {1, 1}).Get(),
              testing::ElementsAre(12));
  const Tensor m = Random(DType::kFloat32, {2, 2}, 1);
  EXPECT_THAT(KernelCall("Gemm", "")
                  .In(m)
                  .In(m)
                  .In(Random(DType::kFloat32, {3}, 1))
                  .Out(DType::kFloat32, {2, 2})
                  .Error(),
              HasSubstr("does not broadcast"));
}

}  // namespace
}  // namespace pipec
