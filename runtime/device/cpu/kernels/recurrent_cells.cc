// RNN, GRU and LSTM. Names as in ONNX: X the input, H the hidden state, C the
// cell's, f, g, h the activations.
#include <algorithm>

#include "runtime/device/cpu/kernels/recurrent.h"
#include "runtime/device/cpu/kernels/register.h"

namespace pipec::cpu {
namespace {

// H = f(X W^T + H R^T + Wb + Rb)
template <typename T>
struct RnnCell {
  static constexpr bool kResets = false;
  static void Step(const CellRow<T> &row) {
    const int64_t n = row.recurrence.hidden;
    row.Enter(0, n, row.h_gates, row.activations[0]);
    std::copy_n(row.x_gates, n, row.h);
  }
};

// z, r = f(X Wz^T + H Rz^T + Wbz + Rbz), the same of r
// n = g(X Wh^T + (r * H) Rh^T + Wbh + Rbh), or g(X Wh^T + r * (H Rh^T + Rbh) +
// Wbh) with linear_before_reset H = (1 - z) * n + z * H
template <typename T>
struct GruCell {
  static constexpr bool kResets = true;

  static void Reset(const CellRow<T> &row, T *reset) {
    const int64_t n = row.recurrence.hidden;
    row.Enter(0, 2 * n, row.h_gates, row.activations[0]);
    for (int64_t i = 0; i < n; ++i) reset[i] = row.x_gates[n + i] * row.h[i];
  }

  static void Step(const CellRow<T> &row) {
    const int64_t n = row.recurrence.hidden;
    T *const x = row.x_gates;
    if (row.recurrence.linear_before_reset) {
      row.Enter(0, 2 * n, row.h_gates, row.activations[0]);
      for (int64_t i = 0; i < n; ++i) {
        const T h_part = row.h_gates[2 * n + i] + (row.r_bias == nullptr ? T{0} : row.r_bias[2 * n + i]);
        x[2 * n + i] += x[n + i] * h_part + (row.w_bias == nullptr ? T{0} : row.w_bias[2 * n + i]);
      }
      row.Finish(x + 2 * n, n, row.activations[1]);
    } else {
      row.Enter(2 * n, n, row.reset, row.activations[1]);
    }
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) row.h[i] = (1 - x[i]) * x[2 * n + i] + x[i] * row.h[i];
  }
};

// i = f(X Wi^T + H Ri^T + Pi * C + Wbi + Rbi), the same of the forget gate,
// which is 1 - i with input_forget C = forget * C + i * g(X Wc^T + H Rc^T + Wbc
// + Rbc) o = f(X Wo^T + H Ro^T + Po * C + Wbo + Rbo) H = o * h(C)
template <typename T>
struct LstmCell {
  static constexpr bool kResets = false;
  static void Step(const CellRow<T> &row) {
    const int64_t n = row.recurrence.hidden;
    T *const i = row.x_gates, *const o = i + n, *const forget = i + 2 * n, *const g = i + 3 * n;
    if (row.peephole != nullptr) {
      for (int64_t k = 0; k < n; ++k) {
        i[k] += row.peephole[k] * row.c[k];
        forget[k] += row.peephole[2 * n + k] * row.c[k];
      }
    }
    row.Enter(0, n, row.h_gates, row.activations[0]);
    row.Enter(2 * n, n, row.h_gates + 2 * n, row.activations[0]);
    row.Enter(3 * n, n, row.h_gates + 3 * n, row.activations[1]);
    if (row.recurrence.input_forget) {
      for (int64_t k = 0; k < n; ++k) forget[k] = 1 - i[k];
    }
#pragma GCC ivdep
    for (int64_t k = 0; k < n; ++k) row.c[k] = forget[k] * row.c[k] + i[k] * g[k];
    if (row.peephole != nullptr) {
      for (int64_t k = 0; k < n; ++k) o[k] += row.peephole[n + k] * row.c[k];
    }
    row.Enter(n, n, row.h_gates + n, row.activations[0]);
    std::copy_n(row.c, n, row.h);
    row.Finish(row.h, n, row.activations[2]);
#pragma GCC ivdep
    for (int64_t k = 0; k < n; ++k) row.h[k] *= o[k];
  }
};

template <template <typename> class Cell>
absl::StatusOr<std::unique_ptr<Kernel>> Make(const KernelSpec &spec, const Recurrence &r) {
  switch (spec.inputs[0].type.dtype) {
    case DType::kFloat32:
      return RecurrentKernel<float, Cell<float>>::Make(spec, r);
    case DType::kFloat64:
      return RecurrentKernel<double, Cell<double>>::Make(spec, r);
    default:
      return NoKernelFor(spec, spec.inputs[0].type.dtype);
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareRnn(const KernelSpec &spec) {
  ASSIGN_OR_RETURN(const Recurrence r, ReadRnn(spec));
  return Make<RnnCell>(spec, r);
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareGru(const KernelSpec &spec) {
  ASSIGN_OR_RETURN(const Recurrence r, ReadGru(spec));
  return Make<GruCell>(spec, r);
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareLstm(const KernelSpec &spec) {
  ASSIGN_OR_RETURN(const Recurrence r, ReadLstm(spec));
  return Make<LstmCell>(spec, r);
}

}  // namespace

void RegisterRecurrentKernels(KernelRegistry &registry) {
  registry.Add("GRU", "", PrepareGru);
  registry.Add("LSTM", "", PrepareLstm);
  registry.Add("RNN", "", PrepareRnn);
}

}  // namespace pipec::cpu
