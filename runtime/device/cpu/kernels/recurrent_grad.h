// The way back through RNN, GRU and LSTM; operands and results as in operands/recurrence.h.
//
// The forward pass is run again, which costs less memory than keeping its gates; then the steps go backwards.
// Every sum runs in an order of its own, so that threads do not matter.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/recurrent.h"

namespace pipec::cpu {

// dy *= f'(x), n elements, where y = f(x).
template <typename T>
void MultiplyBySlope(const Activation& activation, const T* y, T* dy, int64_t n) {
  const T alpha = static_cast<T>(activation.alpha), beta = static_cast<T>(activation.beta);
  const auto each = [=](auto slope) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) dy[i] *= slope(y[i]);
  };
  switch (activation.kind) {
    case ActivationKind::kRelu:
    case ActivationKind::kThresholdedRelu:
      return each([](T e) { return e > T{0} ? T{1} : T{0}; });
    case ActivationKind::kTanh:
      return each([](T e) { return 1 - e * e; });
    case ActivationKind::kSigmoid:
      return each([](T e) { return e * (1 - e); });
    case ActivationKind::kAffine:
      return each([=](T) { return alpha; });
    case ActivationKind::kLeakyRelu:
      return each([=](T e) { return e < T{0} ? alpha : T{1}; });
    case ActivationKind::kScaledTanh:
      return each([=](T e) { return beta * (alpha - e * e / alpha); });
    case ActivationKind::kHardSigmoid:
      return each([=](T e) { return e > T{0} && e < T{1} ? alpha : T{0}; });
    case ActivationKind::kElu:
      return each([=](T e) { return e < T{0} ? e + alpha : T{1}; });
    case ActivationKind::kSoftsign:
      return each([](T e) { return (1 - std::fabs(e)) * (1 - std::fabs(e)); });
    case ActivationKind::kSoftplus:
      return each([](T e) { return 1 - std::exp(-e); });
  }
}

// One sample of one step. Each pointer has H elements, or H for each gate.
template <typename T>
struct GradRow {
  const Recurrence& recurrence;
  const Activation* activations;  // of this direction
  const T *w_bias, *r_bias;       // null without a bias
  T* gates;                       // forward: X @ W^T, then the activated gates
  const T* h_gates;               // forward: h @ R^T
  T *kept_a, *kept_b;             // what the cell keeps of the forward step
  T *h, *c;                       // forward: the state; backward: its gradient
  T* h_before;                    // the state before the step
  T* d_gates;                     // backward: the result's row
  T* d_state_gates;               // backward: the factor of R, where that is another
  T* more;                        // GRU's fifth result
  T* direct;                      // backward: what reaches the state before the step beside the gates
  const T* through;               // backward: GRU's d(r * h)

  // gates[from..] += what else enters n elements' activation, then f.
  void Enter(int64_t from, int64_t n, const T* h_part, const Activation& f) const {
    T* const x = gates + from;
    for (int64_t i = 0; i < n; ++i) x[i] += h_part[i];
    for (int64_t i = 0; w_bias != nullptr && i < n; ++i) x[i] += w_bias[from + i] + r_bias[from + i];
    Activate(f, x, n);
  }
};

// Cell: static void Forward(row), which makes the new state; static void Backward(row), which makes d_gates,
// direct and, in c, what reaches the cell before; kResets: static void Reset(row, T* reset), which makes
// r * h before the forward step, static void BeforeReset(row), which makes the gradient of the third gate, and
// then Backward gets `through`.
template <typename T, typename Cell>
class RecurrentGradKernel : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Make(const KernelSpec& spec, Recurrence r) {
    auto kernel = std::unique_ptr<RecurrentGradKernel>(new RecurrentGradKernel(std::move(r)));
    RETURN_IF_ERROR(kernel->MakeProducts(spec));
    return std::unique_ptr<Kernel>(std::move(kernel));
  }

  int64_t workspace_bytes() const override { return workspace_bytes_; }

  absl::Status Launch(Stream& stream, const KernelArguments& arguments) override {
    const int32_t* const lengths = r_.has_lengths ? Input<int32_t>(arguments, 4) : nullptr;
    for (int64_t sample = 0; lengths != nullptr && sample < r_.batch; ++sample) {
      if (lengths[sample] >= 0 && lengths[sample] <= r_.steps) continue;
      return absl::InvalidArgumentError(absl::StrCat("sequence length ", lengths[sample], " of sample ",
                                                     sample, " is outside [0,", r_.steps, "]"));
    }
    for (int direction = 0; direction < r_.directions; ++direction)
      RETURN_IF_ERROR(Direction(*this, stream, arguments, direction, lengths).Run());
    return absl::OkStatus();
  }

 private:
  enum Product { kInput, kState, kReset, kStateGrad, kResetGrad, kInputGrad, kInputGradMore, kProducts };

  explicit RecurrentGradKernel(Recurrence r)
      : r_(std::move(r)), resets_(Cell::kResets && !r_.linear_before_reset) {
    const int64_t state = r_.batch * r_.hidden, all = r_.steps * r_.batch;
    gates_ = Take(all * r_.gates * r_.hidden);
    kept_a_ = Take(all * r_.hidden), kept_b_ = Take(all * r_.hidden);
    h_gates_ = Take(state * r_.gates);
    h_ = Take(state), c_ = Take(state), direct_ = Take(state), through_ = Take(state);
    d_step_ = Take(state * r_.gates);
  }

  int64_t Take(int64_t elements) {
    const int64_t at = workspace_bytes_;
    workspace_bytes_ += (elements * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64;
    return at;
  }

  absl::Status MakeProducts(const KernelSpec& spec) {
    const int64_t rows = r_.steps * r_.batch, all = r_.gates * r_.hidden;
    const int64_t own = resets_ ? all - r_.hidden : all;  // gates that see h itself
    const auto make = [&](Product which, int64_t m, int64_t k, int64_t n, bool transposed,
                          bool add) -> absl::Status {
      MatrixProduct product;
      product.dtype = spec.inputs[0].type.dtype;
      product.m = m, product.k = k, product.n = n;
      product.transpose_b = transposed, product.add = add;
      ASSIGN_OR_RETURN(products_[which], MakeProduct(spec, product));
      scratch_bytes_ = std::max(scratch_bytes_, products_[which]->workspace_bytes());
      return absl::OkStatus();
    };
    RETURN_IF_ERROR(make(kInput, rows, r_.input, all, true, false));
    RETURN_IF_ERROR(make(kState, r_.batch, r_.hidden, own, true, false));
    RETURN_IF_ERROR(make(kStateGrad, r_.batch, own, r_.hidden, false, false));
    if (resets_) {
      RETURN_IF_ERROR(make(kReset, r_.batch, r_.hidden, r_.hidden, true, false));
      RETURN_IF_ERROR(make(kResetGrad, r_.batch, r_.hidden, r_.hidden, false, false));
    }
    RETURN_IF_ERROR(make(kInputGrad, rows, all, r_.input, false, false));
    if (r_.directions > 1) RETURN_IF_ERROR(make(kInputGradMore, rows, all, r_.input, false, true));
    scratch_ = workspace_bytes_;
    workspace_bytes_ += scratch_bytes_;
    return absl::OkStatus();
  }

  // One direction of one launch.
  class Direction {
   public:
    Direction(const RecurrentGradKernel& kernel, Stream& stream, const KernelArguments& arguments,
              int direction, const int32_t* lengths)
        : k_(kernel),
          r_(kernel.r_),
          stream_(stream),
          arguments_(arguments),
          direction_(direction),
          lengths_(lengths),
          rows_(r_.steps * r_.batch),
          all_(r_.gates * r_.hidden),
          own_(kernel.resets_ ? all_ - r_.hidden : all_) {}

    absl::Status Run() {
      const T* const w = Input<T>(arguments_, 1) + direction_ * all_ * r_.input;
      RETURN_IF_ERROR(Multiply(kInput, Input<T>(arguments_, 0), w, At(k_.gates_)));
      ClearRows();
      Begin(5, At(k_.h_));
      if (Cell::kHasCell) Begin(6, At(k_.c_));
      for (int64_t step = 0; step < r_.steps; ++step) RETURN_IF_ERROR(Forward(step));
      Begin(8, At(k_.h_));
      if (Cell::kHasCell) Begin(9, At(k_.c_));
      for (int64_t step = r_.steps; step-- > 0;) RETURN_IF_ERROR(Backward(step));
      End(3, At(k_.h_));
      if (Cell::kHasCell) End(4, At(k_.c_));
      return Multiply(direction_ == 0 ? kInputGrad : kInputGradMore, Rows(1, all_), w,
                      Output<T>(arguments_, 0));
    }

   private:
    T* At(int64_t offset) const {
      return reinterpret_cast<T*>(static_cast<std::byte*>(arguments_.workspace) + offset);
    }
    // This direction's rows of a result, `width` elements each.
    T* Rows(int output, int64_t width) const {
      return Output<T>(arguments_, output) + direction_ * rows_ * width;
    }
    const T* R() const { return Input<T>(arguments_, 2) + direction_ * all_ * r_.hidden; }

    absl::Status Multiply(Product which, const T* a, const T* b, T* y) const {
      const void* inputs[] = {a, b};
      void* outputs[] = {y};
      return k_.products_[which]->Launch(
          stream_,
          {inputs, outputs, arguments_.scalars, static_cast<std::byte*>(arguments_.workspace) + k_.scratch_});
    }

    // Steps behind a sequence's end change nothing.
    void ClearRows() const {
      if (lengths_ == nullptr) return;
      std::fill_n(Rows(1, all_), rows_ * all_, T{0});
      std::fill_n(Rows(2, r_.hidden), rows_ * r_.hidden, T{0});
      if (Cell::kHasMore) std::fill_n(Rows(4, r_.hidden), rows_ * r_.hidden, T{0});
    }

    // state = operand k, or 0; result k = state.
    void Begin(int k, T* state) const {
      for (int64_t sample = 0; sample < r_.batch; ++sample) {
        T* const to = state + sample * r_.hidden;
        if (arguments_.inputs[k] == nullptr) {
          std::fill_n(to, r_.hidden, T{0});
        } else {
          std::copy_n(Input<T>(arguments_, k) + r_.StateRow(direction_, sample) * r_.hidden, r_.hidden, to);
        }
      }
    }
    void End(int k, const T* state) const {
      for (int64_t sample = 0; sample < r_.batch; ++sample) {
        std::copy_n(state + sample * r_.hidden, r_.hidden,
                    Output<T>(arguments_, k) + r_.StateRow(direction_, sample) * r_.hidden);
      }
    }

    // f(row, its place in time, sample) for the samples whose sequence has this step; g(sample) for others.
    template <typename F, typename G>
    void ForSamples(int64_t step, const F& f, const G& g) const {
      const bool reversed = direction_ == 1 || r_.first_reversed;
      const size_t each = r_.activations.size() / r_.directions;
      const T* const bias = r_.has_bias ? Input<T>(arguments_, 3) + direction_ * 2 * all_ : nullptr;
      const int64_t h = r_.hidden;
      ParallelFor(
          r_.batch, std::max<int64_t>(1, 2048 / std::max<int64_t>(1, all_)), [&](int64_t begin, int64_t end) {
            for (int64_t sample = begin; sample < end; ++sample) {
              const int64_t length = lengths_ == nullptr ? r_.steps : lengths_[sample];
              if (step >= length) {
                g(sample);
                continue;
              }
              const int64_t t = reversed ? length - 1 - step : step, x = r_.XRow(t, sample);
              f(GradRow<T>{r_, r_.activations.data() + direction_ * each, bias,
                           bias == nullptr ? nullptr : bias + all_, At(k_.gates_) + x * all_,
                           At(k_.h_gates_) + sample * own_, At(k_.kept_a_) + x * h, At(k_.kept_b_) + x * h,
                           At(k_.h_) + sample * h, At(k_.c_) + sample * h, Rows(2, h) + x * h,
                           Rows(1, all_) + x * all_, At(k_.d_step_) + sample * own_,
                           Cell::kHasMore ? Rows(4, h) + x * h : nullptr, At(k_.direct_) + sample * h,
                           At(k_.through_) + sample * h},
                t, sample);
            }
          });
    }

    absl::Status Forward(int64_t step) const {
      const int64_t h = r_.hidden;
      RETURN_IF_ERROR(Multiply(kState, At(k_.h_), R(), At(k_.h_gates_)));
      const auto nothing = [](int64_t) {};
      if constexpr (Cell::kResets) {
        if (k_.resets_) {
          ForSamples(
              step,
              [&](const GradRow<T>& row, int64_t, int64_t sample) {
                Cell::Reset(row, At(k_.direct_) + sample * h);
              },
              nothing);
          RETURN_IF_ERROR(Multiply(kReset, At(k_.direct_), R() + own_ * h, At(k_.through_)));
        }
      }
      ForSamples(
          step,
          [&](const GradRow<T>& row, int64_t, int64_t) {
            std::copy_n(row.h, h, row.h_before);
            Cell::Forward(row);
          },
          nothing);
      return absl::OkStatus();
    }

    absl::Status Backward(int64_t step) const {
      const int64_t h = r_.hidden;
      const T* const dy = Input<T>(arguments_, 7);
      const auto keep = [&](int64_t sample) {
        std::copy_n(At(k_.h_) + sample * h, h, At(k_.direct_) + sample * h);
        std::fill_n(At(k_.d_step_) + sample * own_, own_, T{0});
      };
      const auto enter = [&](const GradRow<T>& row, int64_t t, int64_t sample) {
        if (dy == nullptr) return;
        const T* const from = dy + r_.YRow(t, direction_, sample) * h;
        for (int64_t i = 0; i < h; ++i) row.h[i] += from[i];
      };
      if constexpr (Cell::kResets) {
        // The third gate's gradient lies in `direct` for the product, with 0 where a sequence has ended.
        ForSamples(
            step,
            [&](const GradRow<T>& row, int64_t t, int64_t sample) {
              enter(row, t, sample);
              Cell::BeforeReset(row);
            },
            [&](int64_t sample) { std::fill_n(At(k_.direct_) + sample * h, h, T{0}); });
        if (k_.resets_)
          RETURN_IF_ERROR(Multiply(kResetGrad, At(k_.direct_), R() + own_ * h, At(k_.through_)));
        ForSamples(
            step, [&](const GradRow<T>& row, int64_t, int64_t) { Cell::Backward(row); }, keep);
      } else {
        ForSamples(
            step,
            [&](const GradRow<T>& row, int64_t t, int64_t sample) {
              enter(row, t, sample);
              std::fill_n(row.direct, h, T{0});
              Cell::Backward(row);
              std::copy_n(row.d_gates, all_, row.d_state_gates);
            },
            keep);
      }
      RETURN_IF_ERROR(Multiply(kStateGrad, At(k_.d_step_), R(), At(k_.h_)));
      T *const to = At(k_.h_), *const direct = At(k_.direct_);
      for (int64_t i = 0; i < r_.batch * h; ++i) to[i] += direct[i];
      return absl::OkStatus();
    }

    const RecurrentGradKernel& k_;
    const Recurrence& r_;
    Stream& stream_;
    const KernelArguments& arguments_;
    const int direction_;
    const int32_t* const lengths_;
    const int64_t rows_, all_, own_;
  };

  const Recurrence r_;
  const bool resets_;
  std::unique_ptr<Kernel> products_[kProducts];
  // Offsets in the workspace, in bytes.
  int64_t gates_, kept_a_, kept_b_, h_gates_, h_, c_, direct_, through_, d_step_, scratch_ = 0;
  int64_t scratch_bytes_ = 0, workspace_bytes_ = 0;
};

}  // namespace pipec::cpu
