// RNNGrad, GRUGrad and LSTMGrad; names as in recurrent_cells.cc, d for a gradient.
#include "runtime/device/cpu/kernels/recurrent_grad.h"

#include "runtime/device/cpu/kernels/register.h"

namespace pipec::cpu {

namespace {

template <typename T>
struct RnnCell {
  static constexpr bool kResets = false, kHasCell = false, kHasMore = false;

  static void Forward(const GradRow<T> &row) {
    row.Enter(0, row.recurrence.hidden, row.h_gates, row.activations[0]);
    std::copy_n(row.gates, row.recurrence.hidden, row.h);
  }
  static void Backward(const GradRow<T> &row) {
    std::copy_n(row.h, row.recurrence.hidden, row.d_gates);
    MultiplyBySlope(row.activations[0], row.gates, row.d_gates, row.recurrence.hidden);
  }
};

// Keeps H Rh^T + Rbh where r is applied behind it. `more` is what multiplies the other side in dRh: r * H, or
// with linear_before_reset the gradient of what r multiplies.
template <typename T>
struct GruCell {
  static constexpr bool kResets = true, kHasCell = false, kHasMore = true;

  static void Reset(const GradRow<T> &row, T *reset) {
    const int64_t n = row.recurrence.hidden;
    row.Enter(0, 2 * n, row.h_gates, row.activations[0]);
    for (int64_t i = 0; i < n; ++i) reset[i] = row.more[i] = row.gates[n + i] * row.h[i];
  }

  static void Forward(const GradRow<T> &row) {
    const int64_t n = row.recurrence.hidden;
    T *const z = row.gates, *const r = z + n, *const g = z + 2 * n;
    if (row.recurrence.linear_before_reset) {
      row.Enter(0, 2 * n, row.h_gates, row.activations[0]);
      for (int64_t i = 0; i < n; ++i) {
        row.kept_a[i] = row.h_gates[2 * n + i] + (row.r_bias == nullptr ? T{0} : row.r_bias[2 * n + i]);
        g[i] += r[i] * row.kept_a[i] + (row.w_bias == nullptr ? T{0} : row.w_bias[2 * n + i]);
      }
      Activate(row.activations[1], g, n);
    } else {
      row.Enter(2 * n, n, row.through, row.activations[1]);
    }
    for (int64_t i = 0; i < n; ++i) row.h[i] = (1 - z[i]) * g[i] + z[i] * row.h[i];
  }

  static void BeforeReset(const GradRow<T> &row) {
    const int64_t n = row.recurrence.hidden;
    const T *const z = row.gates, *const g = z + 2 * n;
    T *const dz = row.d_gates, *const dg = dz + 2 * n;
    for (int64_t i = 0; i < n; ++i) {
      dz[i] = row.h[i] * (row.h_before[i] - g[i]);
      dg[i] = row.h[i] * (1 - z[i]);
    }
    MultiplyBySlope(row.activations[0], z, dz, n);
    MultiplyBySlope(row.activations[1], g, dg, n);
    std::copy_n(dg, n, row.direct);
  }

  static void Backward(const GradRow<T> &row) {
    const int64_t n = row.recurrence.hidden;
    const T *const z = row.gates, *const r = z + n;
    T *const dr = row.d_gates + n, *const dg = row.d_gates + 2 * n;
    const bool linear = row.recurrence.linear_before_reset;
    for (int64_t i = 0; i < n; ++i) {
      row.direct[i] = row.h[i] * z[i];
      if (linear) {
        dr[i] = dg[i] * row.kept_a[i];
        row.more[i] = dg[i] * r[i];
      } else {
        dr[i] = row.through[i] * row.h_before[i];
        row.direct[i] += row.through[i] * r[i];
      }
    }
    MultiplyBySlope(row.activations[0], r, dr, n);
    std::copy_n(row.d_gates, 2 * n, row.d_state_gates);
    if (linear) std::copy_n(row.more, n, row.d_state_gates + 2 * n);
  }
};

// Keeps C before the step and h(C) behind it.
template <typename T>
struct LstmCell {
  static constexpr bool kResets = false, kHasCell = true, kHasMore = false;

  static void Forward(const GradRow<T> &row) {
    const int64_t n = row.recurrence.hidden;
    T *const i = row.gates, *const o = i + n, *const forget = i + 2 * n, *const g = i + 3 * n;
    row.Enter(0, 3 * n, row.h_gates, row.activations[0]);
    row.Enter(3 * n, n, row.h_gates + 3 * n, row.activations[1]);
    std::copy_n(row.c, n, row.kept_a);
    for (int64_t k = 0; k < n; ++k) {
      if (row.recurrence.input_forget) forget[k] = 1 - i[k];
      row.c[k] = forget[k] * row.c[k] + i[k] * g[k];
    }
    std::copy_n(row.c, n, row.kept_b);
    Activate(row.activations[2], row.kept_b, n);
    for (int64_t k = 0; k < n; ++k) row.h[k] = o[k] * row.kept_b[k];
  }

  static void Backward(const GradRow<T> &row) {
    const int64_t n = row.recurrence.hidden;
    const T *const i = row.gates, *const o = i + n, *const forget = i + 2 * n, *const g = i + 3 * n;
    T *const di = row.d_gates, *const d_o = di + n, *const d_forget = di + 2 * n, *const dg = di + 3 * n;
    for (int64_t k = 0; k < n; ++k) {
      d_o[k] = row.h[k] * row.kept_b[k];
      di[k] = row.h[k] * o[k];  // of h(C), for a moment
    }
    MultiplyBySlope(row.activations[2], row.kept_b, di, n);
    for (int64_t k = 0; k < n; ++k) {
      const T dc = row.c[k] + di[k];
      di[k] = dc * g[k];
      dg[k] = dc * i[k];
      d_forget[k] = dc * row.kept_a[k];
      row.c[k] = dc * forget[k];
      if (!row.recurrence.input_forget) continue;
      di[k] -= d_forget[k];
      d_forget[k] = 0;
    }
    MultiplyBySlope(row.activations[0], i, di, 3 * n);
    MultiplyBySlope(row.activations[1], g, dg, n);
  }
};

template <template <typename> class Cell>
absl::StatusOr<std::unique_ptr<Kernel>> Make(const KernelSpec &spec, const Recurrence &r) {
  const DType dtype = spec.inputs[0].type.dtype;
  if (dtype == DType::kFloat32) return RecurrentGradKernel<float, Cell<float>>::Make(spec, r);
  if (dtype == DType::kFloat64) return RecurrentGradKernel<double, Cell<double>>::Make(spec, r);
  return NoKernelFor(spec, dtype);
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareRnn(const KernelSpec &spec) {
  ASSIGN_OR_RETURN(const Recurrence r, ReadRnnGrad(spec));
  return Make<RnnCell>(spec, r);
}
absl::StatusOr<std::unique_ptr<Kernel>> PrepareGru(const KernelSpec &spec) {
  ASSIGN_OR_RETURN(const Recurrence r, ReadGruGrad(spec));
  return Make<GruCell>(spec, r);
}
absl::StatusOr<std::unique_ptr<Kernel>> PrepareLstm(const KernelSpec &spec) {
  ASSIGN_OR_RETURN(const Recurrence r, ReadLstmGrad(spec));
  return Make<LstmCell>(spec, r);
}

}  // namespace

void RegisterRecurrentGradKernels(KernelRegistry &registry) {
  registry.Add("GRUGrad", kPipecDomain, PrepareGru);
  registry.Add("LSTMGrad", kPipecDomain, PrepareLstm);
  registry.Add("RNNGrad", kPipecDomain, PrepareRnn);
}

}  // namespace pipec::cpu
