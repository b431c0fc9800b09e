// RNN, GRU and LSTM: X @ W^T is one product for all steps; each step then adds H @ R^T and goes through its cell.
#include "runtime/base/status.h"
#include "runtime/device/cuda/kernels/make_kernel.h"
#include "runtime/device/cuda/kernels/recurrent_cell.cuh"
#include "runtime/device/cuda/kernels/recurrent_product.h"
#include "runtime/device/cuda/kernels/register.h"
#include "runtime/device/cuda/launch.h"

namespace pipec::cuda {
namespace {

template <typename T>
struct Step {
  T* x_gates;                // X @ W^T, a row of gates * H for each row of X
  const T* h_gates;          // h @ R^T, (batch, gates * H); where a GRU resets h first, z and r only
  const T* reset_gates;      // (r * h) @ R^T: (batch, H)
  const T *w_bias, *r_bias;  // null without a bias
  const T* peephole;         // LSTM: 3 * H; null without
  T *h, *c, *reset, *y;      // the state (batch, H), read and written; y null: not wanted
};

struct Rnn {
  static constexpr bool kResets = false;
  template <typename T>
  static __device__ T Next(const DirectionOf& d, const Step<T>&, const GateInputs<T>& in, int64_t i, int64_t) {
    return Activated(d.activations[0], in.Sum(in.x[i], in.h[i], i));
  }
};

struct Gru {
  static constexpr bool kResets = true;
  // H = (1 - z) * n + z * H
  template <typename T>
  static __device__ T Next(const DirectionOf& d, const Step<T>& s, const GateInputs<T>& in, int64_t i,
                           int64_t at) {
    const int64_t n = d.hidden, g = 2 * n + i;
    T z, candidate;
    if (d.linear_before_reset) {
      z = Activated(d.activations[0], in.Sum(in.x[i], in.h[i], i));
      const T r = Activated(d.activations[0], in.Sum(in.x[n + i], in.h[n + i], n + i));
      const T h_part = in.h[g] + (in.r_bias == nullptr ? T(0) : in.r_bias[g]);
      candidate = in.Clipped(in.x[g] + (r * h_part + (in.w_bias == nullptr ? T(0) : in.w_bias[g])));
    } else {
      z = in.x[i];  // done before the reset
      candidate = in.Sum(in.x[g], s.reset_gates[at], g);
    }
    candidate = Activated(d.activations[1], candidate);
    return (T(1) - z) * candidate + z * s.h[at];
  }
};

struct Lstm {
  static constexpr bool kResets = false;
  template <typename T>
  static __device__ T Next(const DirectionOf& d, const Step<T>& s, const GateInputs<T>& in, int64_t i,
                           int64_t at) {
    const int64_t n = d.hidden, o = n + i, f = 2 * n + i, g = 3 * n + i;
    T c = s.c[at], i_part = in.x[i], f_part = in.x[f], o_part = in.x[o];
    if (s.peephole != nullptr) {
      i_part += s.peephole[i] * c;
      f_part += s.peephole[f] * c;
    }
    const T enter = Activated(d.activations[0], in.Sum(i_part, in.h[i], i));
    const T forget = d.input_forget ? T(1) - enter : Activated(d.activations[0], in.Sum(f_part, in.h[f], f));
    c = forget * c + enter * Activated(d.activations[1], in.Sum(in.x[g], in.h[g], g));
    s.c[at] = c;
    if (s.peephole != nullptr) o_part += s.peephole[o] * c;
    const T out = Activated(d.activations[0], in.Sum(o_part, in.h[o], o));
    return out * Activated(d.activations[2], in.Clipped(c));
  }
};

template <typename T>
__device__ __forceinline__ GateInputs<T> InputsOf(const DirectionOf& d, const Step<T>& s, int64_t t,
                                                  int64_t sample, int64_t h_gates) {
  return {s.x_gates + d.XRow(t, sample) * d.gates * d.hidden, s.h_gates + sample * h_gates * d.hidden,
          s.w_bias, s.r_bias, d.clip};
}

// z and r of a GRU, kept in x_gates, and reset = r * h. A thread an element of the state.
template <typename T>
__global__ void __launch_bounds__(kThreads) ResetState(const DirectionOf d, const Step<T> s, int64_t step) {
  for (RowWalk walk(FirstThread(), AllThreads(), d.hidden); walk.row() < d.batch; walk.Next()) {
    const int64_t sample = walk.row(), i = walk.item(), at = sample * d.hidden + i,
                  t = d.TimeOf(step, sample);
    s.reset[at] = T(0);
    if (t < 0) continue;
    const GateInputs<T> in = InputsOf(d, s, t, sample, 2);
    T* const gates = s.x_gates + d.XRow(t, sample) * d.gates * d.hidden;
    const T z = Activated(d.activations[0], in.Sum(in.x[i], in.h[i], i));
    const int64_t n = d.hidden + i;
    s.reset[at] = Activated(d.activations[0], in.Sum(in.x[n], in.h[n], n)) * s.h[at];
    gates[i] = z;
  }
}

template <typename T, typename Cell>
__global__ void __launch_bounds__(kThreads)
    RunCell(const DirectionOf d, const Step<T> s, int64_t h_gates, int64_t step) {
  for (RowWalk walk(FirstThread(), AllThreads(), d.hidden); walk.row() < d.batch; walk.Next()) {
    const int64_t sample = walk.row(), i = walk.item(), at = sample * d.hidden + i,
                  t = d.TimeOf(step, sample);
    if (t < 0) continue;
    const T h = Cell::template Next<T>(d, s, InputsOf(d, s, t, sample, h_gates), i, at);
    s.h[at] = h;
    if (s.y != nullptr) s.y[d.YRow(t, sample) * d.hidden + i] = h;
  }
}

template <typename T, typename Cell>
class RecurrentKernel : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Make(const KernelSpec& spec, const Recurrence& r,
                                                      CudaContext& context) {
    auto kernel = std::unique_ptr<RecurrentKernel>(new RecurrentKernel(spec, r));
    const int64_t all = r.gates * r.hidden, own = all - (kernel->resets_ ? r.hidden : 0);
    ASSIGN_OR_RETURN(kernel->input_,
                     RecurrentProduct::Create(spec, r.steps * r.batch, r.input, all, true, false, context));
    ASSIGN_OR_RETURN(kernel->state_,
                     RecurrentProduct::Create(spec, r.batch, r.hidden, own, true, false, context));
    ASSIGN_OR_RETURN(kernel->reset_,
                     RecurrentProduct::Create(spec, r.batch, r.hidden, r.hidden, true, false, context));
    kernel->site_ = context.AddFaultSite(spec, "sequence length", "inside the steps");
    kernel->LayOut();
    return std::unique_ptr<Kernel>(std::move(kernel));
  }

  int64_t workspace_bytes() const override { return workspace_bytes_; }

  absl::Status Launch(Stream& stream, const KernelArguments& arguments) override {
    const cudaStream_t on = static_cast<CudaStream&>(stream).get();
    if (r_.batch * r_.hidden == 0) return absl::OkStatus();
    T* const y = has_y_ ? Output<T>(arguments, 0) : nullptr;
    if (y != nullptr && r_.has_lengths) {  // steps behind a sequence's end are 0
      const int64_t bytes = r_.steps * r_.directions * r_.batch * r_.hidden * static_cast<int64_t>(sizeof(T));
      RETURN_IF_CUDA_ERROR(cudaMemsetAsync(y, 0, bytes, on));
    }
    for (int direction = 0; direction < r_.directions; ++direction)
      RETURN_IF_ERROR(RunDirection(on, arguments, direction, y));
    return absl::OkStatus();
  }

 private:
  RecurrentKernel(const KernelSpec& spec, const Recurrence& r)
      : r_(r),
        resets_(Cell::kResets && !r.linear_before_reset),
        has_y_(HasOutput(spec, 0)),
        has_y_h_(HasOutput(spec, 1)),
        has_y_c_(HasOutput(spec, 2)),
        has_initial_c_(Has(spec, 6)),
        has_peephole_(Has(spec, 7)) {}

  void LayOut() {
    const auto take = [this](int64_t elements) {
      const int64_t at = workspace_bytes_;
      workspace_bytes_ += (elements * static_cast<int64_t>(sizeof(T)) + 255) / 256 * 256;
      return at;
    };
    const int64_t state = r_.batch * r_.hidden;
    x_gates_ = take(r_.steps * state * r_.gates);
    h_gates_ = take(state * r_.gates);
    h_ = take(state), c_ = take(state), reset_state_ = take(state), reset_gates_ = take(state);
    scratch_ = workspace_bytes_;
    workspace_bytes_ +=
        std::max({input_.workspace_bytes(), state_.workspace_bytes(), reset_.workspace_bytes()});
  }

  absl::Status RunDirection(cudaStream_t stream, const KernelArguments& arguments, int direction,
                            T* y) const {
    auto* const workspace = static_cast<std::byte*>(arguments.workspace);
    const auto at = [workspace](int64_t offset) { return reinterpret_cast<T*>(workspace + offset); };
    const int64_t all = r_.gates * r_.hidden, own = resets_ ? r_.gates - 1 : r_.gates;
    const DirectionOf d = OnDevice(r_, direction, r_.has_lengths ? Input<int32_t>(arguments, 4) : nullptr);
    const T* const bias = r_.has_bias ? Input<T>(arguments, 3) + direction * 2 * all : nullptr;
    const T* const weights = Input<T>(arguments, 2) + direction * all * r_.hidden;
    const Step<T> s{at(x_gates_),
                    at(h_gates_),
                    at(reset_gates_),
                    bias,
                    bias == nullptr ? nullptr : bias + all,
                    has_peephole_ ? Input<T>(arguments, 7) + direction * 3 * r_.hidden : nullptr,
                    at(h_),
                    at(c_),
                    at(reset_state_),
                    y};
    const dim3 blocks = BlocksFor(r_.batch * r_.hidden);
    const T* const initial_h = r_.has_initial_h ? Input<T>(arguments, 5) : nullptr;
    const T* const initial_c = has_initial_c_ ? Input<T>(arguments, 6) : nullptr;
    if (d.lengths != nullptr)
      RETURN_IF_ERROR(pipec::Launch(CheckLengths<T>, BlocksFor(r_.batch), kThreads, stream, d, site_));
    RETURN_IF_ERROR(input_.Run(stream, Input<T>(arguments, 0),
                               Input<T>(arguments, 1) + direction * all * r_.input, s.x_gates,
                               workspace + scratch_));
    RETURN_IF_ERROR(pipec::Launch(BeginState<T>, blocks, kThreads, stream, d, initial_h, s.h));
    RETURN_IF_ERROR(pipec::Launch(BeginState<T>, blocks, kThreads, stream, d, initial_c, s.c));
    for (int64_t step = 0; step < r_.steps; ++step) {
      RETURN_IF_ERROR(state_.Run(stream, s.h, weights, at(h_gates_), workspace + scratch_));
      if (resets_) {
        RETURN_IF_ERROR(pipec::Launch(ResetState<T>, blocks, kThreads, stream, d, s, step));
        RETURN_IF_ERROR(reset_.Run(stream, s.reset, weights + own * r_.hidden * r_.hidden, at(reset_gates_),
                                   workspace + scratch_));
      }
      RETURN_IF_ERROR(pipec::Launch(RunCell<T, Cell>, blocks, kThreads, stream, d, s, own, step));
    }
    if (has_y_h_)
      RETURN_IF_ERROR(pipec::Launch(EndState<T>, blocks, kThreads, stream, d, s.h, Output<T>(arguments, 1)));
    if (has_y_c_)
      RETURN_IF_ERROR(pipec::Launch(EndState<T>, blocks, kThreads, stream, d, s.c, Output<T>(arguments, 2)));
    return absl::OkStatus();
  }

  const Recurrence r_;
  const bool resets_, has_y_, has_y_h_, has_y_c_, has_initial_c_, has_peephole_;
  RecurrentProduct input_, state_, reset_;
  FaultSite site_;
  // Offsets in the workspace, in bytes.
  int64_t x_gates_ = 0, h_gates_ = 0, h_ = 0, c_ = 0, reset_state_ = 0, reset_gates_ = 0, scratch_ = 0;
  int64_t workspace_bytes_ = 0;
};

template <typename Cell>
absl::StatusOr<std::unique_ptr<Kernel>> Make(const KernelSpec& spec, const Recurrence& r,
                                             CudaContext& context) {
  return ForWideFloats(spec, spec.inputs[0].type.dtype, [&](auto tag) {
    return RecurrentKernel<typename decltype(tag)::type, Cell>::Make(spec, r, context);
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareRnn(const KernelSpec& spec, CudaContext& context) {
  ASSIGN_OR_RETURN(const Recurrence r, ReadRnn(spec));
  return Make<Rnn>(spec, r, context);
}
absl::StatusOr<std::unique_ptr<Kernel>> PrepareGru(const KernelSpec& spec, CudaContext& context) {
  ASSIGN_OR_RETURN(const Recurrence r, ReadGru(spec));
  return Make<Gru>(spec, r, context);
}
absl::StatusOr<std::unique_ptr<Kernel>> PrepareLstm(const KernelSpec& spec, CudaContext& context) {
  ASSIGN_OR_RETURN(const Recurrence r, ReadLstm(spec));
  return Make<Lstm>(spec, r, context);
}

}  // namespace

void RegisterRecurrentKernels(KernelRegistry& registry) {
  registry.Add("GRU", "", PrepareGru);
  registry.Add("LSTM", "", PrepareLstm);
  registry.Add("RNN", "", PrepareRnn);
}

}  // namespace pipec::cuda
