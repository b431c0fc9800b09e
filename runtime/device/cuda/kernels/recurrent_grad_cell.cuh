// One element of the hidden state on the way forward and back through RNN, GRU and LSTM.
//   Forward(place) makes the new state and keeps what the way back needs. Backward(place, dh) makes d_gates and, in
//   c, what reaches
//   the cell before; it returns what reaches the state before the step beside the gates. Reset(place) makes r * h
//   before the
//   forward step, BeforeReset(place, dh) the gradient of the third gate before Backward, which then has `through`.
#pragma once

#include "runtime/device/cuda/kernels/recurrent_cell.cuh"

namespace pipec::cuda {

// Rows are X's, (T * batch); states (batch, H).
template <typename T>
struct Steps {
  T* gates;                  // rows of X @ W^T, then the activated gates
  const T* h_gates;          // forward: h @ R^T
  const T *w_bias, *r_bias;  // null without a bias
  T *kept_a, *kept_b;        // rows: what the cell keeps of the forward step
  T *h, *c;                  // forward: the state; backward: its gradient
  T* direct;                 // forward: r * h; backward: the gradient of a GRU's third gate
  T* through;                // forward: (r * h) @ R^T; backward: the gradient of r * h
  T* d_step;                 // backward: the factor of R, (batch, gates that see h itself)
  T *h_before, *d_gates;     // rows: results
  T* more;                   // rows: GRU's fifth result
  const T* dy;               // null: 0
  bool resets;
};

// One element of the state of one sample at one step.
template <typename T>
struct Place {
  const DirectionOf& d;
  const Steps<T>& s;
  int64_t state, i, row;  // in a state; of H; in rows of H
  T *gates, *d_gates;     // of the row
  GateInputs<T> in;

  __device__ T Gate(int64_t k, const Activation& f) const {
    const int64_t at = k * d.hidden + i;
    return Activated(f, in.Sum(gates[at], in.h[at], at));
  }
};

struct RnnGrad {
  static constexpr bool kResets = false, kHasCell = false, kHasMore = false;
  template <typename T>
  static __device__ void Forward(const Place<T>& p) {
    p.s.h[p.state] = p.gates[p.i] = p.Gate(0, p.d.activations[0]);
  }
  template <typename T>
  static __device__ T Backward(const Place<T>& p, T dh) {
    p.d_gates[p.i] = dh * Slope(p.d.activations[0], p.gates[p.i]);
    return T(0);
  }
};

// Keeps C before the step and h(C) behind it.
struct LstmGrad {
  static constexpr bool kResets = false, kHasCell = true, kHasMore = false;
  template <typename T>
  static __device__ void Forward(const Place<T>& p) {
    const int64_t n = p.d.hidden, i = p.i;
    const Activation* const f = p.d.activations;
    const T enter = p.Gate(0, f[0]), out = p.Gate(1, f[0]), own_forget = p.Gate(2, f[0]), g = p.Gate(3, f[1]);
    const T forget = p.d.input_forget ? T(1) - enter : own_forget;
    p.gates[i] = enter, p.gates[n + i] = out, p.gates[2 * n + i] = forget, p.gates[3 * n + i] = g;
    const T before = p.s.c[p.state], c = forget * before + enter * g, bent = Activated(f[2], c);
    p.s.kept_a[p.row] = before;
    p.s.kept_b[p.row] = bent;
    p.s.c[p.state] = c;
    p.s.h[p.state] = out * bent;
  }
  template <typename T>
  static __device__ T Backward(const Place<T>& p, T dh) {
    const int64_t n = p.d.hidden, i = p.i;
    const Activation* const f = p.d.activations;
    const T enter = p.gates[i], out = p.gates[n + i], forget = p.gates[2 * n + i], g = p.gates[3 * n + i];
    const T bent = p.s.kept_b[p.row];
    const T dc = p.s.c[p.state] + dh * out * Slope(f[2], bent);
    T d_enter = dc * g, d_forget = dc * p.s.kept_a[p.row];
    p.s.c[p.state] = dc * forget;
    if (p.d.input_forget) {
      d_enter -= d_forget;
      d_forget = T(0);
    }
    p.d_gates[i] = d_enter * Slope(f[0], enter);
    p.d_gates[n + i] = dh * bent * Slope(f[0], out);
    p.d_gates[2 * n + i] = d_forget * Slope(f[0], forget);
    p.d_gates[3 * n + i] = dc * enter * Slope(f[1], g);
    return T(0);
  }
};

// Keeps H Rh^T + Rbh where r is applied behind it. `more` is what multiplies the other side in dRh: r * H, or with
// linear_before_reset the gradient of what r multiplies.
struct GruGrad {
  static constexpr bool kResets = true, kHasCell = false, kHasMore = true;
  template <typename T>
  static __device__ void Reset(const Place<T>& p) {
    const int64_t n = p.d.hidden;
    p.gates[p.i] = p.Gate(0, p.d.activations[0]);
    const T r = p.Gate(1, p.d.activations[0]);
    p.gates[n + p.i] = r;
    p.s.direct[p.state] = p.s.more[p.row] = r * p.s.h[p.state];
  }
  template <typename T>
  static __device__ void Forward(const Place<T>& p) {
    const int64_t n = p.d.hidden, i = p.i, at = 2 * n + i;
    T g;
    if (p.d.linear_before_reset) {
      p.gates[i] = p.Gate(0, p.d.activations[0]);
      const T r = p.gates[n + i] = p.Gate(1, p.d.activations[0]);
      const T kept = p.in.h[at] + (p.in.r_bias == nullptr ? T(0) : p.in.r_bias[at]);
      p.s.kept_a[p.row] = kept;
      g = Activated(p.d.activations[1],
                    p.gates[at] + (r * kept + (p.in.w_bias == nullptr ? T(0) : p.in.w_bias[at])));
    } else {
      g = Activated(p.d.activations[1], p.in.Sum(p.gates[at], p.s.through[p.state], at));
    }
    p.gates[at] = g;
    const T z = p.gates[i];
    p.s.h[p.state] = (T(1) - z) * g + z * p.s.h[p.state];
  }
  // The gradients of z and of the third gate.
  template <typename T>
  static __device__ void BeforeReset(const Place<T>& p, T dh) {
    const int64_t n = p.d.hidden, i = p.i, at = 2 * n + i;
    const T z = p.gates[i], g = p.gates[at];
    p.d_gates[i] = dh * (p.s.h_before[p.row] - g) * Slope(p.d.activations[0], z);
    p.s.direct[p.state] = p.d_gates[at] = dh * (T(1) - z) * Slope(p.d.activations[1], g);
  }
  template <typename T>
  static __device__ T Backward(const Place<T>& p, T dh) {
    const int64_t n = p.d.hidden, i = p.i;
    const T z = p.gates[i], r = p.gates[n + i], dg = p.d_gates[2 * n + i];
    T rest = dh * z, dr;
    if (p.d.linear_before_reset) {
      dr = dg * p.s.kept_a[p.row];
      p.s.more[p.row] = dg * r;
    } else {
      dr = p.s.through[p.state] * p.s.h_before[p.row];
      rest += p.s.through[p.state] * r;
    }
    p.d_gates[n + i] = dr * Slope(p.d.activations[0], r);
    return rest;
  }
};

}  // namespace pipec::cuda
