// One element of the hidden state of RNN, GRU and LSTM on the GPU: names as in ONNX, the state H, C the cell's, and
// d for a gradient. All operands of a step are element by element, but for the products, which are cuBLASLt's.
#pragma once

#include <cmath>
#include <cstdint>

#include "runtime/device/cuda/kernels/elements.cuh"
#include "runtime/device/cuda/kernels/row_walk.cuh"
#include "runtime/device/operands/recurrence.h"

namespace pipec::cuda {

template <typename T>
__device__ __forceinline__ T Activated(const Activation& f, T x) {
  const T alpha = static_cast<T>(f.alpha), beta = static_cast<T>(f.beta), one = 1;
  switch (f.kind) {
    case ActivationKind::kRelu:
      return x < T(0) ? T(0) : x;
    case ActivationKind::kTanh:
      return tanh(x);
    case ActivationKind::kSigmoid:
      return one / (one + exp(-x));
    case ActivationKind::kAffine:
      return alpha * x + beta;
    case ActivationKind::kLeakyRelu:
      return x < T(0) ? alpha * x : x;
    case ActivationKind::kThresholdedRelu:
      return x > alpha ? x : T(0);
    case ActivationKind::kScaledTanh:
      return alpha * tanh(beta * x);
    case ActivationKind::kHardSigmoid:
      return fmin(one, fmax(T(0), alpha * x + beta));
    case ActivationKind::kElu:
      return x < T(0) ? alpha * (exp(x) - one) : x;
    case ActivationKind::kSoftsign:
      return x / (one + fabs(x));
    case ActivationKind::kSoftplus:
      return fmax(x, T(0)) + log1p(exp(-fabs(x)));
  }
  return x;
}

// f'(x), where y = f(x).
template <typename T>
__device__ __forceinline__ T Slope(const Activation& f, T y) {
  const T alpha = static_cast<T>(f.alpha), beta = static_cast<T>(f.beta), one = 1;
  switch (f.kind) {
    case ActivationKind::kRelu:
    case ActivationKind::kThresholdedRelu:
      return y > T(0) ? one : T(0);
    case ActivationKind::kTanh:
      return one - y * y;
    case ActivationKind::kSigmoid:
      return y * (one - y);
    case ActivationKind::kAffine:
      return alpha;
    case ActivationKind::kLeakyRelu:
      return y < T(0) ? alpha : one;
    case ActivationKind::kScaledTanh:
      return beta * (alpha - y * y / alpha);
    case ActivationKind::kHardSigmoid:
      return y > T(0) && y < one ? alpha : T(0);
    case ActivationKind::kElu:
      return y < T(0) ? y + alpha : one;
    case ActivationKind::kSoftsign:
      return (one - fabs(y)) * (one - fabs(y));
    case ActivationKind::kSoftplus:
      return one - exp(-y);
  }
  return one;
}

// A direction of a recurrence, as kernels see it.
struct DirectionOf {
  int64_t steps, batch, hidden, gates;
  int directions, direction;
  bool reversed, batch_first, linear_before_reset, input_forget;
  float clip;
  Activation activations[3];
  const int32_t* lengths;  // null: all sequences have all steps

  __device__ int64_t XRow(int64_t t, int64_t sample) const {
    return batch_first ? sample * steps + t : t * batch + sample;
  }
  __device__ int64_t YRow(int64_t t, int64_t sample) const {
    return batch_first ? (sample * steps + t) * directions + direction
                       : (t * directions + direction) * batch + sample;
  }
  __device__ int64_t StateRow(int64_t sample) const {
    return batch_first ? sample * directions + direction : direction * batch + sample;
  }
  // Where in time the step of a sample is, -1: behind its sequence's end. A length out of range is 0.
  __device__ int64_t TimeOf(int64_t step, int64_t sample) const {
    int64_t length = steps;
    if (lengths != nullptr) length = lengths[sample] >= 0 && lengths[sample] <= steps ? lengths[sample] : 0;
    if (step >= length) return -1;
    return reversed ? length - 1 - step : step;
  }
};

inline DirectionOf OnDevice(const Recurrence& r, int direction, const int32_t* lengths) {
  DirectionOf d{r.steps,
                r.batch,
                r.hidden,
                r.gates,
                r.directions,
                direction,
                direction == 1 || r.first_reversed,
                r.batch_first,
                r.linear_before_reset,
                r.input_forget,
                r.clip,
                {},
                lengths};
  const size_t each = r.activations.size() / r.directions;
  for (size_t i = 0; i < each; ++i) d.activations[i] = r.activations[direction * each + i];
  return d;
}

// What enters a gate's activation: the share of X, of the state, and both biases (null: none), (gates * H) each.
template <typename T>
struct GateInputs {
  const T *x, *h;  // of this sample
  const T *w_bias, *r_bias;
  float clip;

  // x += h_part and the biases of element `at`, at most `clip` from 0.
  __device__ T Sum(T x_part, T h_part, int64_t at) const {
    T sum = x_part + h_part;
    if (w_bias != nullptr) sum += w_bias[at] + r_bias[at];
    return Clipped(sum);
  }
  __device__ T Clipped(T sum) const {
    if (clip <= 0) return sum;
    const T most = static_cast<T>(clip);
    return fmin(most, fmax(-most, sum));
  }
};

// state (batch, H) = what `from` holds of this direction, or 0 if it is null.
template <typename T>
__global__ void __launch_bounds__(kThreads) BeginState(const DirectionOf d, const T* from, T* state) {
  for (RowWalk walk(FirstThread(), AllThreads(), d.hidden); walk.row() < d.batch; walk.Next()) {
    const int64_t at = walk.row() * d.hidden + walk.item(),
                  there = d.StateRow(walk.row()) * d.hidden + walk.item();
    state[at] = from == nullptr ? T(0) : from[there];
  }
}
template <typename T>
__global__ void __launch_bounds__(kThreads) EndState(const DirectionOf d, const T* state, T* to) {
  for (RowWalk walk(FirstThread(), AllThreads(), d.hidden); walk.row() < d.batch; walk.Next()) {
    const int64_t at = walk.row() * d.hidden + walk.item(),
                  there = d.StateRow(walk.row()) * d.hidden + walk.item();
    to[there] = state[at];
  }
}

// A template's own copy in each file that launches it.
template <typename T>
__global__ void __launch_bounds__(kThreads) CheckLengths(const DirectionOf d, const FaultSite site) {
  for (int64_t sample = FirstItem(); sample < d.batch; sample += ItemStride()) {
    const int32_t length = d.lengths[sample];
    if (length < 0 || length > d.steps) LeaveNote(site, length, sample);
  }
}

}  // namespace pipec::cuda
