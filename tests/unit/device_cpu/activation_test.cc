#include <cmath>

#include "kernel_call.h"

namespace pipec {
namespace {

const Shape kShape = {3, 5, 7};
constexpr int64_t kElements = 105;

double Gelu(double x, bool tanh) {
  if (tanh) return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * std::pow(x, 3))));
  return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
}

std::vector<double> Map(const std::vector<double>& x, const std::function<double(double)>& f) {
  std::vector<double> y;
  for (double value : x) y.push_back(f(value));
  return y;
}

// dY times the derivative of f by central differences, element by element.
std::vector<double> Chain(const std::vector<double>& dy, const std::vector<double>& x,
                          const std::function<double(double)>& f) {
  std::vector<double> dx;
  for (size_t i = 0; i < x.size(); ++i) dx.push_back(dy[i] * (f(x[i] + 1e-5) - f(x[i] - 1e-5)) / 2e-5);
  return dx;
}

TEST(Gelu, AndItsGradient) {
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    const double tolerance = dtype == DType::kFloat32 ? 3e-6 : 1e-9;
    for (bool tanh : {false, true}) {
      const auto f = [tanh](double x) { return Gelu(x, tanh); };
      const std::string approximate = tanh ? "tanh" : "none";
      const Tensor x = Random(dtype, kShape, 1, -6, 6), dy = Random(dtype, kShape, 2);
      for (int threads : {1, 2}) {
        KernelCall forward("Gelu", "");
        forward.In(x).Out(dtype, kShape).Attr("approximate", approximate).Threads(threads);
        ExpectNear(forward.Get(), Map(Values(x), f), tolerance);
        EXPECT_EQ(forward.Bytes(), forward.At(0).Bytes());
        KernelCall grad("GeluGrad", kHelpers);
        grad.In(dy).In(x).Out(dtype, kShape).Attr("approximate", approximate).Threads(threads);
        ExpectNear(grad.Get(), Chain(Values(dy), Values(x), f), tolerance);
        EXPECT_EQ(grad.Bytes(), grad.At(0).Bytes());
        EXPECT_EQ(grad.Bytes(), grad.At(1).Bytes());
      }
    }
  }
  // Far out nothing overflows.
  const Tensor far = Make(DType::kFloat32, {2}, {-1e4, 1e4}), one = Make(DType::kFloat32, {2}, {1, 1});
  EXPECT_THAT(KernelCall("Gelu", "").In(far).Out(DType::kFloat32, {2}).Get(), testing::ElementsAre(0, 1e4));
  EXPECT_THAT(KernelCall("GeluGrad", kHelpers).In(one).In(far).Out(DType::kFloat32, {2}).Get(),
              testing::ElementsAre(0, 1));
  EXPECT_THAT(KernelCall("Gelu", "")
                  .In(far)
                  .Out(DType::kFloat32, {2})
                  .Attr("approximate", std::string("fast"))
                  .Error(),
              testing::HasSubstr("'fast'"));
}

TEST(ActivationGrad, IsTheDerivativeWrittenWithTheResult) {
  struct Case {
    const char* op;
    std::function<double(double)> f;
  };
  const std::vector<Case> cases = {{"TanhGrad", [](double x) { return std::tanh(x); }},
                                   {"SigmoidGrad", [](double x) { return 1 / (1 + std::exp(-x)); }},
                                   {"ReluGrad", [](double x) { return x > 0 ? x : 0; }}};
  for (const Case& c : cases) {
    for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
      const std::vector<double> x = RandomValues(kElements, 1);
      const Tensor dy = Random(dtype, kShape, 2), y = Make(dtype, kShape, Map(x, c.f));
      KernelCall call(c.op, kHelpers);
      call.In(dy).In(y).Out(dtype, kShape);
      ExpectNear(call.Get(), Chain(Values(dy), x, c.f), dtype == DType::kFloat32 ? 2e-6 : 1e-9, c.op);
      EXPECT_EQ(call.Bytes(), call.At(0).Bytes());
      EXPECT_EQ(call.Bytes(), call.At(1).Bytes());
    }
  }
  const Tensor zero = Make(DType::kFloat32, {1}, {0}), one = Make(DType::kFloat32, {1}, {1});
  EXPECT_THAT(KernelCall("ReluGrad", kHelpers).In(one).In(zero).Out(DType::kFloat32, {1}).Get(),
              testing::ElementsAre(0));
  EXPECT_THAT(KernelCall("ReluGrad", kHelpers)
                  .In(one)
                  .In(Random(DType::kFloat32, {2}, 1))
                  .Out(DType::kFloat32, {1})
                  .Error(),
              testing::HasSubstr("input 1 is float32[2], wanted float32[1]"));
}

}  // namespace
}  // namespace pipec
