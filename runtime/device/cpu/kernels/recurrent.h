// What RNN, GRU and LSTM have in common; operands and names as in operands/recurrence.h.
//
// X @ W^T is one product for all steps; each step then adds H @ R^T and goes
// through its cell, a sample at a time.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/matrix_product.h"
#include "runtime/device/cpu/kernels/recurrent_activation.h"
#include "runtime/device/cpu/parallel_for.h"

namespace pipec::cpu {

// One sample of one step.
template <typename T>
struct CellRow {
  const Recurrence &recurrence;
  const Activation *activations;  // of this direction
  T *x_gates;                     // X @ W^T: gates * H, may be overwritten
  const T *h_gates;               // h @ R^T: gates * H; where a GRU resets h first, z and r only
  const T *reset;                 // (r * h) @ R^T: H; GRU
  const T *w_bias, *r_bias;       // gates * H; null without a bias
  const T *peephole;              // LSTM: 3 * H; null without
  T *h, *c;                       // the state: H, read and written

  // x_gates[from..] += what else enters n elements' activation, then f.
  void Enter(int64_t from, int64_t n, const T *h_part, const Activation &f) const {
    T *const x = x_gates + from;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) x[i] += h_part[i];
    if (w_bias != nullptr) {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) x[i] += w_bias[from + i] + r_bias[from + i];
    }
    Finish(x, n, f);
  }
  void Finish(T *x, int64_t n, const Activation &f) const {
    if (recurrence.clip > 0) {
      const T most = static_cast<T>(recurrence.clip);
      for (int64_t i = 0; i < n; ++i) x[i] = std::fmin(most, std::fmax(-most, x[i]));
    }
    Activate(f, x, n);
  }
};

// Cell: static void Step(const CellRow<T>&), which makes the new state;
// kResets: static void Reset(const CellRow<T>&, T* reset), which makes r * h
// before the step unless linear_before_reset.
template <typename T, typename Cell>
class RecurrentKernel : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Make(const KernelSpec &spec, Recurrence r) {
    const bool resets = Cell::kResets && !r.linear_before_reset;
    std::unique_ptr<Kernel> products[3];
    const auto product = [&](int64_t m, int64_t k, int64_t n) {
      MatrixProduct product;
      product.dtype = spec.inputs[0].type.dtype;
      product.m = m, product.k = k, product.n = n;
      product.transpose_b = true;
      return MakeProduct(spec, product);
    };
    ASSIGN_OR_RETURN(products[0], product(r.steps * r.batch, r.input, r.gates * r.hidden));
    ASSIGN_OR_RETURN(products[1], product(r.batch, r.hidden, (r.gates - (resets ? 1 : 0)) * r.hidden));
    if (resets) {
      ASSIGN_OR_RETURN(products[2], product(r.batch, r.hidden, r.hidden));
    }
    return std::unique_ptr<Kernel>(new RecurrentKernel(spec, std::move(r), products));
  }

  int64_t workspace_bytes() const override { return workspace_bytes_; }

  absl::Status Launch(Stream &stream, const KernelArguments &arguments) override {
    const int32_t *const lengths = r_.has_lengths ? Input<int32_t>(arguments, 4) : nullptr;
    for (int64_t sample = 0; r_.has_lengths && sample < r_.batch; ++sample) {
      if (lengths[sample] < 0 || lengths[sample] > r_.steps) {
        return absl::InvalidArgumentError(absl::StrCat("sequence length ", lengths[sample], " of sample ",
                                                       sample, " is outside [0,", r_.steps, "]"));
      }
    }
    if (has_y_ && r_.has_lengths) {  // steps behind a sequence's end are 0
      std::fill_n(Output<T>(arguments, 0), r_.steps * r_.directions * r_.batch * r_.hidden, T{0});
    }
    for (int direction = 0; direction < r_.directions; ++direction) {
      RETURN_IF_ERROR(RunDirection(stream, arguments, direction, lengths));
    }
    return absl::OkStatus();
  }

 private:
  RecurrentKernel(const KernelSpec &spec, Recurrence r, std::unique_ptr<Kernel> (&products)[3])
      : r_(std::move(r)),
        input_product_(std::move(products[0])),
        state_product_(std::move(products[1])),
        reset_product_(std::move(products[2])),
        has_y_(HasOutput(spec, 0)),
        has_y_h_(HasOutput(spec, 1)),
        has_y_c_(HasOutput(spec, 2)),
        has_initial_c_(Has(spec, 6)),
        has_peephole_(Has(spec, 7)) {
    const auto take = [this](int64_t elements) {
      const int64_t at = workspace_bytes_;
      workspace_bytes_ += (elements * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64;
      return at;
    };
    const int64_t state = r_.batch * r_.hidden;
    x_gates_ = take(r_.steps * state * r_.gates);
    h_gates_ = take(state * r_.gates);
    h_ = take(state), c_ = take(state);
    reset_ = take(state), reset_gates_ = take(state);
    scratch_ = workspace_bytes_;
    int64_t own = std::max(input_product_->workspace_bytes(), state_product_->workspace_bytes());
    if (reset_product_) own = std::max(own, reset_product_->workspace_bytes());
    workspace_bytes_ += own;
  }

  // y = a @ b^T.
  absl::Status Multiply(Kernel &product, Stream &stream, const KernelArguments &arguments, const T *a,
                        const T *b, T *y) const {
    const void *inputs[] = {a, b};
    void *outputs[] = {y};
    void *const scratch = static_cast<std::byte *>(arguments.workspace) + scratch_;
    return product.Launch(stream, {inputs, outputs, arguments.scalars, scratch});
  }

  absl::Status RunDirection(Stream &stream, const KernelArguments &arguments, int direction,
                            const int32_t *lengths) const {
    const auto at = [&](int64_t offset) {
      return reinterpret_cast<T *>(static_cast<std::byte *>(arguments.workspace) + offset);
    };
    T *const x_gates = at(x_gates_), *const h_gates = at(h_gates_), *const h = at(h_), *const c = at(c_),
             *const reset = at(reset_), *const reset_gates = at(reset_gates_);
    const int64_t hidden = r_.hidden, all = r_.gates * hidden;
    const int64_t h_all = reset_product_ ? all - hidden : all;
    const T *const w = Input<T>(arguments, 1) + direction * all * r_.input;
    const T *const recurrent = Input<T>(arguments, 2) + direction * all * hidden;
    RETURN_IF_ERROR(Multiply(*input_product_, stream, arguments, Input<T>(arguments, 0), w, x_gates));
    for (int64_t sample = 0; sample < r_.batch; ++sample) {
      const int64_t row = r_.StateRow(direction, sample) * hidden;
      const auto begin = [&](bool given, int k, T *state) {
        if (given) {
          std::copy_n(Input<T>(arguments, k) + row, hidden, state + sample * hidden);
        } else {
          std::fill_n(state + sample * hidden, hidden, T{0});
        }
      };
      begin(r_.has_initial_h, 5, h);
      begin(has_initial_c_, 6, c);
    }
    const T *const bias = r_.has_bias ? Input<T>(arguments, 3) + direction * 2 * all : nullptr;
    const T *const peephole = has_peephole_ ? Input<T>(arguments, 7) + direction * 3 * hidden : nullptr;
    const size_t each = r_.activations.size() / r_.directions;
    const bool reversed = direction == 1 || r_.first_reversed;
    const int64_t grain = std::max<int64_t>(1, 2048 / std::max<int64_t>(1, all));
    for (int64_t step = 0; step < r_.steps; ++step) {
      RETURN_IF_ERROR(Multiply(*state_product_, stream, arguments, h, recurrent, h_gates));
      // f(row, its time, its sample) for the samples that are not yet at their
      // end.
      const auto for_rows = [&](const auto &f) {
        ParallelFor(r_.batch, grain, [&](int64_t begin, int64_t end) {
          for (int64_t sample = begin; sample < end; ++sample) {
            const int64_t length = lengths == nullptr ? r_.steps : lengths[sample];
            if (step >= length) continue;
            const int64_t t = reversed ? length - 1 - step : step;
            f(CellRow<T>{r_, r_.activations.data() + direction * each, x_gates + r_.XRow(t, sample) * all,
                         h_gates + sample * h_all, reset_gates + sample * hidden, bias,
                         bias == nullptr ? nullptr : bias + all, peephole, h + sample * hidden,
                         c + sample * hidden},
              t, sample);
          }
        });
      };
      if constexpr (Cell::kResets) {
        if (reset_product_) {
          for_rows([&](const CellRow<T> &row, int64_t, int64_t sample) {
            Cell::Reset(row, reset + sample * hidden);
          });
          RETURN_IF_ERROR(
              Multiply(*reset_product_, stream, arguments, reset, recurrent + h_all * hidden, reset_gates));
        }
      }
      for_rows([&](const CellRow<T> &row, int64_t t, int64_t sample) {
        Cell::Step(row);
        if (has_y_)
          std::copy_n(row.h, hidden, Output<T>(arguments, 0) + r_.YRow(t, direction, sample) * hidden);
      });
    }
    for (int64_t sample = 0; sample < r_.batch; ++sample) {
      const int64_t row = r_.StateRow(direction, sample) * hidden;
      if (has_y_h_) std::copy_n(h + sample * hidden, hidden, Output<T>(arguments, 1) + row);
      if (has_y_c_) std::copy_n(c + sample * hidden, hidden, Output<T>(arguments, 2) + row);
    }
    return absl::OkStatus();
  }

  const Recurrence r_;
  const std::unique_ptr<Kernel> input_product_, state_product_, reset_product_;
  const bool has_y_, has_y_h_, has_y_c_, has_initial_c_, has_peephole_;
  // Offsets in the workspace, in bytes.
  int64_t x_gates_, h_gates_, h_, c_, reset_, reset_gates_, scratch_;
  int64_t workspace_bytes_ = 0;
};

}  // namespace pipec::cpu
