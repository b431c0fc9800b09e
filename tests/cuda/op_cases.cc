#include "tests/cuda/op_cases.h"

#include <algorithm>
#include <vector>

#include "tests/cuda/attention_cases.h"
#include "tests/cuda/channel_cases.h"
#include "tests/cuda/draw.h"
#include "tests/cuda/index_cases.h"
#include "tests/cuda/move_cases.h"
#include "tests/cuda/pointwise_cases.h"
#include "tests/cuda/recurrent_cases.h"
#include "tests/cuda/row_cases.h"
#include "tests/cuda/signal_cases.h"
#include "tests/cuda/window_cases.h"

namespace pipec {
namespace {

KernelCase Accumulate(Random& random) {
  KernelCase c = Named("ai.pipec", "Accumulate");
  const DType sum = WideFloat(random);
  const Shape shape = AnyShape(random);
  AddInput(c, {sum, shape}, random);
  AddInput(c, {sum == DType::kFloat64 ? WideFloat(random) : sum, shape}, random);
  c.spec.outputs.push_back({{sum, shape}});
  c.in_place = {0};
  c.scalars.microbatch = Draw(random, 0, 1);
  c.scalars.valid_samples = Draw(random, 1, 3);
  if (Draw(random, 0, 1)) c.spec.attributes.Set("samples", int64_t{3});
  return c;
}

KernelCase SquaredNorm(Random& random) {
  KernelCase c = Named("ai.pipec", "SquaredNorm");
  AddInput(c, {AnyFloat(random), {Draw(random, 0, 20000)}}, random);
  c.spec.outputs.push_back({{DType::kFloat64, {}}});
  return c;
}

KernelCase Pack(Random& random) {
  KernelCase c = Named("ai.pipec", "Pack");
  const int64_t n = Draw(random, 1, 150);
  for (int64_t k = 0; k < n; ++k) AddInput(c, {DType::kFloat64, {}}, random);
  c.spec.outputs.push_back({{DType::kFloat64, {n}}});
  return c;
}

KernelCase GradientScale(Random& random) {
  KernelCase c = Named("ai.pipec", "GradientScale");
  AddInput(c, {DType::kFloat64, {}}, random);
  AddInput(c, {DType::kFloat64, {}}, random, true);
  if (Draw(random, 0, 1)) {
    c.spec.inputs[1].present = false;
    c.spec.attributes.Set("weight", 3.5f);
  }
  std::vector<int64_t> order;
  for (int64_t operands = Draw(random, 0, 80); operands > 0; --operands) {
    const int64_t elements = Draw(random, 1, 5);
    AddInput(c, {DType::kFloat64, {elements}}, random, true);
    for (int64_t i = 0; i < elements; ++i) order.push_back(static_cast<int64_t>(order.size()));
  }
  std::shuffle(order.begin(), order.end(), random);
  if (Draw(random, 0, 1)) c.spec.attributes.Set("order", order);
  if (Draw(random, 0, 1)) c.spec.attributes.Set("divisor", 4.0f);
  c.scalars.loss_scale = 1024;
  c.scalars.clip_norm = static_cast<double>(Draw(random, 0, 2));
  for (int k = 0; k < 3; ++k) c.spec.outputs.push_back({{DType::kFloat64, {}}});
  return c;
}

KernelCase LossScale(Random& random) {
  KernelCase c = Named("ai.pipec", "LossScale");
  c.spec.attributes.Set("divisor", static_cast<float>(Draw(random, 1, 9)));
  c.scalars.loss_scale = static_cast<double>(Draw(random, 1, 1 << 16));
  c.spec.outputs.push_back({{DType::kFloat32, {}}});
  return c;
}

MakeCase Optimizer(const std::string& op, int states) {
  return [=](Random& random) {
    KernelCase c = Named("ai.pipec", op);
    const TensorType type{WideFloat(random), AnyShape(random)};
    for (int k = 0; k < states + 2; ++k) AddInput(c, type, random, k >= 2);
    AddInput(c, {DType::kFloat64, {}}, random);
    for (int k = 0; k < states + 1; ++k) {
      c.spec.outputs.push_back({type});
      c.in_place.push_back(k == 0 ? 0 : k + 1);
    }
    const int64_t parameter = Draw(random, 0, 4);
    c.spec.attributes.Set("parameter", parameter);
    c.spec.attributes.Set("nesterov", Draw(random, 0, 1));
    c.spec.attributes.Set("decoupled", Draw(random, 0, 1));
    c.scalars.updates = Draw(random, 0, 5);
    c.scalars.clip_value = static_cast<double>(Draw(random, 0, 1));
    for (int64_t p = 0; p <= parameter; ++p) c.parameters.push_back({0.01 * static_cast<double>(p + 1), 0.1});
    return c;
  };
}

// The CPU multiplies 16-bit floats on some processors only; float32 and float64 everywhere.
MakeCase MatMul(const std::string& domain, const std::string& op) {
  return [=](Random& random) {
    KernelCase c = Named(domain, op);
    const DType dtype = WideFloat(random);
    const bool fused = op == "FusedMatMul";
    const bool ta = fused && Draw(random, 0, 1), tb = fused && Draw(random, 0, 1);
    if (fused) {
      c.spec.attributes.Set("trans_a", int64_t{ta});
      c.spec.attributes.Set("trans_b", int64_t{tb});
      c.spec.attributes.Set("alpha", 0.5f);
    }
    // Rows of a multiple of 8 elements are what cuBLASLt takes Gelu's slope of.
    const bool gradient = fused && Draw(random, 0, 3) == 0, even = gradient && Draw(random, 0, 1);
    const int64_t m = Draw(random, 1, 9), k = Draw(random, 0, 12),
                  n = even ? 8 * Draw(random, 1, 2) : Draw(random, 1, 9);
    Shape a, b, y;
    for (int64_t rank = Draw(random, 0, 3); rank > 0; --rank) {
      const int64_t dim = Draw(random, 1, 3), one = Draw(random, 0, 3);
      a.push_back(one == 1 ? 1 : dim), b.push_back(one == 2 ? 1 : dim), y.push_back(dim);
    }
    if (Draw(random, 0, 2) == 0) b.clear();
    for (size_t i = 0; i < y.size(); ++i) y[i] = std::max(a[i], b.empty() ? 1 : b[i]);
    for (int64_t dim : {ta ? k : m, ta ? m : k}) a.push_back(dim);
    for (int64_t dim : {tb ? n : k, tb ? k : n}) b.push_back(dim);
    y.push_back(m), y.push_back(n);
    AddInput(c, {dtype, a}, random);
    AddInput(c, {dtype, b}, random);
    if (fused && !gradient && Draw(random, 0, 1)) AddInput(c, {dtype, {n}}, random);
    if (fused && !gradient && Draw(random, 0, 1)) c.spec.attributes.Set("activation", std::string("GeluTanh"));
    if (gradient) {
      c.spec.attributes.Set("activation", std::string("GeluTanhGrad"));
      AddInput(c, {dtype, {n}}, random);
      c.spec.inputs.back().present = false;
      AddInput(c, {dtype, y}, random);
    }
    c.spec.outputs.push_back({{dtype, y}});
    return c;
  };
}

KernelCase MatMulWeightGrad(Random& random) {
  KernelCase c = Named("ai.pipec", "MatMulWeightGrad");
  const DType dtype = AnyFloat(random);
  const bool small = dtype == DType::kFloat16 || dtype == DType::kBFloat16, transposed = Draw(random, 0, 1);
  const DType to = small ? DType::kFloat32 : dtype;
  c.spec.attributes.Set("trans_b", int64_t{transposed});
  if (small) c.spec.attributes.Set("to", static_cast<int64_t>(to));
  const int64_t rows = Draw(random, 0, 40), n = Draw(random, 1, 70), k = Draw(random, 1, 9);
  AddInput(c, {dtype, {rows, n}}, random);
  AddInput(c, {dtype, {rows, k}}, random);
  c.spec.outputs = {{{to, transposed ? Shape{n, k} : Shape{k, n}}}, {{to, {n}}}};
  return c;
}

KernelCase Gemm(Random& random) {
  KernelCase c = Named("", "Gemm");
  const DType dtype = WideFloat(random);
  const bool ta = Draw(random, 0, 1), tb = Draw(random, 0, 1);
  c.spec.attributes.Set("transA", int64_t{ta});
  c.spec.attributes.Set("transB", int64_t{tb});
  c.spec.attributes.Set("alpha", 1.5f);
  c.spec.attributes.Set("beta", static_cast<float>(Draw(random, 0, 2)));
  const int64_t m = Draw(random, 1, 9), k = Draw(random, 1, 12), n = Draw(random, 1, 9);
  AddInput(c, {dtype, {ta ? k : m, ta ? m : k}}, random);
  AddInput(c, {dtype, {tb ? n : k, tb ? k : n}}, random);
  const Shape addends[] = {{m, n}, {n}, {1, n}, {m, 1}, {}};
  if (Draw(random, 0, 4)) AddInput(c, {dtype, addends[Draw(random, 0, 4)]}, random);
  c.spec.outputs.push_back({{dtype, {m, n}}});
  return c;
}

}  // namespace

const std::map<std::pair<std::string, std::string>, MakeCase>& OpCases() {
  static const auto* const cases = [] {
    auto* map = new std::map<std::pair<std::string, std::string>, MakeCase>;
    AddPointwiseCases(*map);
    AddMoveCases(*map);
    AddIndexCases(*map);
    AddSignalCases(*map);
    (*map)[{"ai.pipec", "Accumulate"}] = Accumulate;
    (*map)[{"ai.pipec", "SquaredNorm"}] = SquaredNorm;
    (*map)[{"ai.pipec", "Pack"}] = Pack;
    (*map)[{"ai.pipec", "GradientScale"}] = GradientScale;
    (*map)[{"ai.pipec", "LossScale"}] = LossScale;
    (*map)[{"ai.pipec", "Sgd"}] = Optimizer("Sgd", 0);
    (*map)[{"ai.pipec", "Momentum"}] = Optimizer("Momentum", 1);
    (*map)[{"ai.pipec", "Adam"}] = Optimizer("Adam", 2);
    (*map)[{"ai.pipec", "Adagrad"}] = Optimizer("Adagrad", 1);
    (*map)[{"", "MatMul"}] = MatMul("", "MatMul");
    (*map)[{"ai.pipec", "FusedMatMul"}] = MatMul("ai.pipec", "FusedMatMul");
    (*map)[{"ai.pipec", "MatMulWeightGrad"}] = MatMulWeightGrad;
    (*map)[{"", "Gemm"}] = Gemm;
    AddAttentionCases(*map);
    AddRowCases(*map);
    AddChannelCases(*map);
    AddWindowCases(*map);
    AddRecurrentCases(*map);
    return map;
  }();
  return *cases;
}

}  // namespace pipec
