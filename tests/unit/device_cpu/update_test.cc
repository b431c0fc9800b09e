// Accumulation, norms and optimizers.
#include <cmath>

#include "kernel_call.h"

namespace pipec {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Accumulate, ReplacesInTheFirstMicrobatchThenAdds) {
  const std::vector<std::pair<DType, DType>> types = {
      {DType::kFloat32, DType::kFloat32}, {DType::kFloat64, DType::kFloat32},
      {DType::kFloat64, DType::kFloat64}, {DType::kInt32, DType::kInt32},
      {DType::kInt64, DType::kInt32},     {DType::kInt64, DType::kInt64}};
  for (const auto& [sum, x] : types) {
    KernelCall call("Accumulate", kHelpers);
    call.In(Make(sum, {3}, {1, 2, 3})).In(Make(x, {3}, {10, 20, -30})).Out(sum, {3}).At(0);
    EXPECT_THAT(call.Get(), ElementsAre(10, 20, -30));
    call.scalars.microbatch = 1;
    EXPECT_THAT(call.Get(), ElementsAre(11, 22, -27));
  }
  const Tensor f = Make(DType::kFloat32, {1}, {1}), i = Make(DType::kInt64, {1}, {1});
  EXPECT_THAT(KernelCall("Accumulate", kHelpers).In(f).In(i).Out(DType::kFloat32, {1}).Error(),
              HasSubstr("no kernel for"));
}

TEST(Accumulate, LeavesOutMicrobatchesWithPadding) {
  KernelCall call("Accumulate", kHelpers);
  call.In(Make(DType::kFloat64, {2}, {1, 2})).In(Make(DType::kFloat32, {2}, {10, std::nan("")}));
  call.Out(DType::kFloat64, {2}).Attr("samples", int64_t{4}).At(0);
  call.scalars.valid_samples = 3;
  EXPECT_THAT(call.Get(), ElementsAre(0, 0));
  call.scalars.microbatch = 1;
  EXPECT_THAT(call.Get(), ElementsAre(1, 2));
  call.scalars.valid_samples = 4;
  EXPECT_EQ(call.Get()[0], 11);
}

TEST(SquaredNorm, IsTheSameForEveryNumberOfThreads) {
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (int64_t n : {1, 31, 8192, 50000}) {
      const Tensor g = Random(dtype, {n}, 1);
      double wanted = 0;
      for (double value : Values(g)) wanted += value * value;
      KernelCall call("SquaredNorm", kHelpers);
      call.In(g).Out(DType::kFloat64, {});
      ExpectNear(call.Get(), {wanted}, 1e-12);
      const std::string bytes = call.Bytes();
      for (int threads : {2, 3, 5}) EXPECT_EQ(bytes, call.Threads(threads).Misalign(8).Bytes());
    }
  }
}

TEST(GradientScale, DividesByTheWeightAndClips) {
  const DType f = DType::kFloat64;
  KernelCall call("GradientScale", kHelpers);
  call.In(Make(f, {}, {12})).In(Make(f, {}, {4})).In(Make(f, {}, {9})).In(Make(f, {2}, {100, 16}));
  call.Out(f, {}).Out(f, {}).Out(f, {});
  call.Attr("order", std::vector<int64_t>{2, 0});  // without the 100
  EXPECT_THAT(call.Get(0), ElementsAre(0.25));
  EXPECT_THAT(call.Get(1), ElementsAre(1.25));
  EXPECT_THAT(call.Get(2), ElementsAre(3));
  call.scalars.clip_norm = 2;
  EXPECT_THAT(call.Get(0), ElementsAre(0.25));
  call.scalars.clip_norm = 0.5;
  EXPECT_THAT(call.Get(0), ElementsAre(0.25 * (0.5 / (1.25 + 1e-6))));
  EXPECT_THAT(call.Attr("order", std::vector<int64_t>{3}).Error(),
              HasSubstr("order holds 3, but there are 3 norms"));

  KernelCall fixed("GradientScale", kHelpers);
  fixed.In(Make(f, {}, {12})).NoIn().In(Make(f, {2}, {9, 16})).Attr("weight", 8.0f);
  fixed.Out(f, {}).Out(f, {}).Out(f, {});
  EXPECT_THAT(fixed.Get(0), ElementsAre(0.125));
  EXPECT_THAT(fixed.Get(1), ElementsAre(0.625));
  EXPECT_THAT(fixed.Get(2), ElementsAre(1.5));
}

// Sums of gradients that were made with loss_scale / divisor = 8 in place of 1.
TEST(GradientScale, TakesTheLossScaleBack) {
  const DType f = DType::kFloat64;
  KernelCall call("GradientScale", kHelpers);
  call.In(Make(f, {}, {12})).In(Make(f, {}, {4})).In(Make(f, {}, {25 * 64})).Attr("divisor", 512.0f);
  call.Out(f, {}).Out(f, {}).Out(f, {});
  call.scalars.loss_scale = 4096;
  EXPECT_THAT(call.Get(0), ElementsAre(0.25 / 8));
  EXPECT_THAT(call.Get(1), ElementsAre(1.25));
  EXPECT_THAT(call.Get(2), ElementsAre(3));
  call.scalars.clip_norm = 0.5;
  EXPECT_THAT(call.Get(0), ElementsAre(0.25 / 8 * (0.5 / (1.25 + 1e-6))));

  KernelCall seed("LossScale", kHelpers);
  seed.Attr("divisor", 512.0f).Out(DType::kFloat32, {});
  seed.scalars.loss_scale = 4096;
  EXPECT_THAT(seed.Get(0), ElementsAre(8));
}

TEST(Pack, LaysScalarsSideBySide) {
  const DType f = DType::kFloat64;
  EXPECT_THAT(KernelCall("Pack", kHelpers).In(Make(f, {}, {3})).In(Make(f, {}, {-1})).Out(f, {2}).Get(),
              ElementsAre(3, -1));
}

// Five steps of one parameter element; `update` changes p and the states by PyTorch's formulas.
struct Optimizer {
  const char* op;
  Attributes attributes;
  int states;
  double weight_decay;
  std::function<void(double& p, double g, double* state, int step)> update;
};

constexpr double kLr = 0.05, kMomentum = 0.8, kBeta1 = 0.7, kBeta2 = 0.95, kEps = 1e-3;

std::vector<Optimizer> Optimizers() {
  const auto adam = [](double& p, double g, double* s, int step) {
    s[0] = kBeta1 * s[0] + (1 - kBeta1) * g;
    s[1] = kBeta2 * s[1] + (1 - kBeta2) * g * g;
    const double m = s[0] / (1 - std::pow(kBeta1, step + 1)), v = s[1] / (1 - std::pow(kBeta2, step + 1));
    p -= kLr * m / (std::sqrt(v) + kEps);
  };
  Attributes nesterov, decoupled;
  nesterov.Set("nesterov", int64_t{1});
  decoupled.Set("decoupled", int64_t{1});
  return {
      {"Sgd", {}, 0, 0.1, [](double& p, double g, double*, int) { p -= kLr * (g + 0.1 * p); }},
      {"Momentum",
       {},
       1,
       0.1,
       [](double& p, double g, double* s, int) {
         s[0] = kMomentum * s[0] + (g + 0.1 * p);
         p -= kLr * s[0];
       }},
      {"Momentum", nesterov, 1, 0.1,
       [](double& p, double g, double* s, int) {
         const double d = g + 0.1 * p;
         s[0] = kMomentum * s[0] + d;
         p -= kLr * (d + kMomentum * s[0]);
       }},
      {"Adam", {}, 2, 0, adam},
      {"Adam", {}, 2, 0.1, [=](double& p, double g, double* s, int step) { adam(p, g + 0.1 * p, s, step); }},
      {"Adam", decoupled, 2, 0.1,
       [=](double& p, double g, double* s, int step) {
         p -= kLr * 0.1 * p;
         adam(p, g, s, step);
       }},
      {"Adagrad", {}, 1, 0.1, [](double& p, double g, double* s, int) {
         const double d = g + 0.1 * p;
         s[0] += d * d;
         p -= kLr * d / (std::sqrt(s[0]) + kEps);
       }}};
}

TEST(Optimizers, FollowPyTorchOverSteps) {
  const int64_t n = 50;
  for (const Optimizer& optimizer : Optimizers()) {
    for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
      for (double clip_value : {0.0, 0.3}) {
        const ParameterScalars parameters[] = {{}, {kLr, optimizer.weight_decay}};
        std::vector<double> p = RandomValues(n, 1), got = p;
        std::vector<std::vector<double>> state(optimizer.states, std::vector<double>(n)), got_state = state;
        for (int step = 0; step < 5; ++step) {
          const std::vector<double> g = RandomValues(n, 10 + step);
          for (int64_t i = 0; i < n; ++i) {
            double s[2] = {}, gradient = 0.5 * g[i];
            if (clip_value > 0) gradient = std::min(std::max(gradient, -clip_value), clip_value);
            for (int k = 0; k < optimizer.states; ++k) s[k] = state[k][i];
            optimizer.update(p[i], gradient, s, step);
            for (int k = 0; k < optimizer.states; ++k) state[k][i] = s[k];
          }
          KernelCall call(optimizer.op, kHelpers);
          for (const auto& [name, value] : optimizer.attributes) call.Attr(name, value);
          call.Attr("parameter", int64_t{1}).In(Make(dtype, {n}, got)).In(Make(dtype, {n}, g));
          for (const auto& values : got_state) call.In(Make(dtype, {n}, values));
          call.In(Make(DType::kFloat64, {}, {0.5})).Out(dtype, {n}).At(0);
          for (int k = 0; k < optimizer.states; ++k) call.Out(dtype, {n}).At(k + 2);
          call.scalars.updates = step;
          call.scalars.momentum = kMomentum;
          call.scalars.beta1 = kBeta1;
          call.scalars.beta2 = kBeta2;
          call.scalars.eps = kEps;
          call.scalars.clip_value = clip_value;
          call.scalars.parameters = parameters;
          got = call.Get(0);
          for (int k = 0; k < optimizer.states; ++k) got_state[k] = call.Get(k + 1);
          ExpectNear(got, p, dtype == DType::kFloat32 ? 1e-6 : 1e-13, optimizer.op);
        }
      }
    }
  }
}

TEST(Optimizers, AreTheSameForEveryNumberOfThreads) {
  const ParameterScalars parameters[] = {{kLr, 0.1}};
  const int64_t n = 40001;
  KernelCall call("Adam", kHelpers);
  call.Attr("parameter", int64_t{0}).In(Random(DType::kFloat32, {n}, 1)).In(Random(DType::kFloat32, {n}, 2));
  call.In(Random(DType::kFloat32, {n}, 3))
      .In(Random(DType::kFloat32, {n}, 4, 0, 1))
      .In(Make(DType::kFloat64, {}, {1}));
  for (int k = 0; k < 3; ++k) call.Out(DType::kFloat32, {n});
  call.scalars.parameters = parameters;
  const std::string bytes = call.Bytes();
  for (int threads : {2, 3}) EXPECT_EQ(bytes, call.Threads(threads).Misalign(8).Bytes());
  KernelCall wrong("Sgd", kHelpers);
  const Tensor p = Make(DType::kFloat32, {1}, {1});
  wrong.In(p).In(p).In(Make(DType::kFloat64, {}, {1})).Out(DType::kFloat32, {1});
  EXPECT_THAT(wrong.Error(), HasSubstr("parameter is -1"));
}

}  // namespace
}  // namespace pipec
