// The activations that RNN, GRU and LSTM name in their attributes, over rows of
// elements.
#pragma once

#include <cmath>
#include <cstdint>

#include "runtime/device/cpu/kernels/vector_loop.h"
#include "runtime/device/cpu/kernels/vector_math.h"
#include "runtime/device/operands/recurrence.h"

namespace pipec::cpu {

// x = f(x), n elements.
template <typename T>
void Activate(const Activation &activation, T *x, int64_t n) {
  const T alpha = static_cast<T>(activation.alpha), beta = static_cast<T>(activation.beta);
  const auto each = [=](auto f) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) x[i] = f(x[i]);
  };
  switch (activation.kind) {
    case ActivationKind::kRelu:
      return each([](T e) { return e < T{0} ? T{0} : e; });
    case ActivationKind::kTanh:
      return each([](T e) { return cpu::Tanh(e); });
    case ActivationKind::kSigmoid:
      return each([](T e) { return cpu::Sigmoid(e); });
    case ActivationKind::kAffine:
      return each([=](T e) { return alpha * e + beta; });
    case ActivationKind::kLeakyRelu:
      return each([=](T e) { return e < T{0} ? alpha * e : e; });
    case ActivationKind::kThresholdedRelu:
      return each([=](T e) { return e > alpha ? e : T{0}; });
    case ActivationKind::kScaledTanh:
      return each([=](T e) { return alpha * cpu::Tanh(beta * e); });
    case ActivationKind::kHardSigmoid:
      return each([=](T e) { return std::fmin(T{1}, std::fmax(T{0}, alpha * e + beta)); });
    case ActivationKind::kElu:
      return each([=](T e) { return e < T{0} ? alpha * (cpu::Exp(e) - 1) : e; });
    case ActivationKind::kSoftsign:
      return each([](T e) { return e / (1 + std::fabs(e)); });
    case ActivationKind::kSoftplus:
      return each([](T e) { return std::fmax(e, T{0}) + std::log1p(std::exp(-std::fabs(e))); });
  }
}

}  // namespace pipec::cpu
