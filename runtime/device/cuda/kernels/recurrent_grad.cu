// RNNGrad, GRUGrad and LSTMGrad (operands/recurrence.h). The forward pass is run again, which costs less memory
// than keeping its gates; then the steps go backwards.
#include "runtime/base/status.h"
#include "runtime/device/cuda/kernels/make_kernel.h"
#include "runtime/device/cuda/kernels/recurrent_grad_cell.cuh"
#include "runtime/device/cuda/kernels/recurrent_product.h"
#include "runtime/device/cuda/kernels/register.h"
#include "runtime/device/cuda/launch.h"

namespace pipec::cuda {
namespace {

// f(place) for the elements of samples whose sequence has this step, g(element of the state) for others.
template <typename T, typename F, typename G>
__device__ __forceinline__ void ForPlaces(const DirectionOf& d, const Steps<T>& s, int64_t own, int64_t step,
                                          F&& f, G&& g) {
  for (RowWalk walk(FirstThread(), AllThreads(), d.hidden); walk.row() < d.batch; walk.Next()) {
    const int64_t sample = walk.row(), i = walk.item(), at = sample * d.hidden + i,
                  t = d.TimeOf(step, sample);
    if (t < 0) {
      g(at, sample, i);
      continue;
    }
    const int64_t x = d.XRow(t, sample), gates = x * d.gates * d.hidden;
    const Place<T> place{d,
                         s,
                         at,
                         i,
                         x * d.hidden + i,
                         s.gates + gates,
                         s.d_gates + gates,
                         {nullptr, s.h_gates + sample * own * d.hidden, s.w_bias, s.r_bias, 0}};
    f(place, t, sample);
  }
}
struct Nothing {
  __device__ void operator()(int64_t, int64_t, int64_t) const {}
};

template <typename T>
__global__ void __launch_bounds__(kThreads)
    ResetForward(const DirectionOf d, const Steps<T> s, int64_t own, int64_t step) {
  ForPlaces(
      d, s, own, step, [](const Place<T>& p, int64_t, int64_t) { GruGrad::Reset(p); }, Nothing());
}

template <typename T, typename Cell>
__global__ void __launch_bounds__(kThreads)
    CellForward(const DirectionOf d, const Steps<T> s, int64_t own, int64_t step) {
  ForPlaces(
      d, s, own, step,
      [](const Place<T>& p, int64_t, int64_t) {
        p.s.h_before[p.row] = p.s.h[p.state];
        Cell::Forward(p);
      },
      Nothing());
}

template <typename T>
__device__ __forceinline__ T StateGradient(const Place<T>& p, int64_t t, int64_t sample) {
  const T dh = p.s.h[p.state];
  return p.s.dy == nullptr ? dh : dh + p.s.dy[p.d.YRow(t, sample) * p.d.hidden + p.i];
}

// A GRU's first half: the third gate's gradient lies in `direct` for the product, with 0 where a sequence has ended.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    ResetBackward(const DirectionOf d, const Steps<T> s, int64_t own, int64_t step) {
  ForPlaces(
      d, s, own, step,
      [](const Place<T>& p, int64_t t, int64_t sample) {
        const T dh = StateGradient(p, t, sample);
        p.s.h[p.state] = dh;
        GruGrad::BeforeReset(p, dh);
      },
      [&](int64_t at, int64_t, int64_t) { s.direct[at] = T(0); });
}

// Leaves in h what reaches the state before the step beside the gates; what the gates hand it, d_step @ R, is added
// to it.
template <typename T, typename Cell>
__global__ void __launch_bounds__(kThreads)
    CellBackward(const DirectionOf d, const Steps<T> s, int64_t own, int64_t step) {
  ForPlaces(
      d, s, own, step,
      [&](const Place<T>& p, int64_t t, int64_t sample) {
        // A GRU's first half has added dY.
        const T dh = Cell::kResets ? p.s.h[p.state] : StateGradient(p, t, sample);
        p.s.h[p.state] = Cell::Backward(p, dh);
        T* const d_step = p.s.d_step + sample * own * d.hidden;
        for (int64_t k = 0; k < own; ++k) {
          const bool linear = Cell::kResets && k == 2;
          d_step[k * d.hidden + p.i] = linear ? p.s.more[p.row] : p.d_gates[k * d.hidden + p.i];
        }
      },
      [&](int64_t, int64_t sample, int64_t i) {
        for (int64_t k = 0; k < own; ++k) s.d_step[(sample * own + k) * d.hidden + i] = T(0);
      });
}

template <typename T, typename Cell>
class RecurrentGradKernel : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Make(const KernelSpec& spec, const Recurrence& r,
                                                      CudaContext& context) {
    auto kernel = std::unique_ptr<RecurrentGradKernel>(new RecurrentGradKernel(r));
    const int64_t rows = r.steps * r.batch, all = r.gates * r.hidden, own = kernel->own_ * r.hidden;
    const auto make = [&](RecurrentProduct& product, int64_t m, int64_t k, int64_t n, bool transposed,
                          bool add) -> absl::Status {
      ASSIGN_OR_RETURN(product, RecurrentProduct::Create(spec, m, k, n, transposed, add, context));
      kernel->scratch_bytes_ = std::max(kernel->scratch_bytes_, product.workspace_bytes());
      return absl::OkStatus();
    };
    RETURN_IF_ERROR(make(kernel->input_, rows, r.input, all, true, false));
    RETURN_IF_ERROR(make(kernel->state_, r.batch, r.hidden, own, true, false));
    RETURN_IF_ERROR(make(kernel->reset_, r.batch, r.hidden, r.hidden, true, false));
    RETURN_IF_ERROR(make(kernel->reset_grad_, r.batch, r.hidden, r.hidden, false, false));
    RETURN_IF_ERROR(make(kernel->state_grad_, r.batch, own, r.hidden, false, true));
    RETURN_IF_ERROR(make(kernel->input_grad_, rows, all, r.input, false, false));
    RETURN_IF_ERROR(make(kernel->input_grad_more_, rows, all, r.input, false, true));
    kernel->site_ = context.AddFaultSite(spec, "sequence length", "inside the steps");
    kernel->LayOut();
    return std::unique_ptr<Kernel>(std::move(kernel));
  }

  int64_t workspace_bytes() const override { return workspace_bytes_; }

  absl::Status Launch(Stream& stream, const KernelArguments& arguments) override {
    const cudaStream_t on = static_cast<CudaStream&>(stream).get();
    for (int direction = 0; direction < r_.directions && r_.batch * r_.hidden > 0; ++direction)
      RETURN_IF_ERROR(RunDirection(on, arguments, direction));
    return absl::OkStatus();
  }

 private:
  explicit RecurrentGradKernel(const Recurrence& r)
      : r_(r),
        resets_(Cell::kResets && !r.linear_before_reset),
        own_(resets_ ? r.gates - 1 : r.gates),
        blocks_(BlocksFor(r.batch * r.hidden)) {}

  void LayOut() {
    const auto take = [this](int64_t elements) {
      const int64_t at = workspace_bytes_;
      workspace_bytes_ += (elements * static_cast<int64_t>(sizeof(T)) + 255) / 256 * 256;
      return at;
    };
    const int64_t state = r_.batch * r_.hidden, rows = r_.steps * state;
    gates_ = take(rows * r_.gates);
    kept_a_ = take(rows), kept_b_ = take(rows);
    h_gates_ = take(state * r_.gates), d_step_ = take(state * r_.gates);
    h_ = take(state), c_ = take(state), direct_ = take(state), through_ = take(state);
    scratch_ = workspace_bytes_;
    workspace_bytes_ += scratch_bytes_;
  }

  // Of this direction's rows, `width` elements each.
  T* Rows(const KernelArguments& arguments, int output, int direction, int64_t width) const {
    return Output<T>(arguments, output) + direction * r_.steps * r_.batch * width;
  }

  absl::Status RunDirection(cudaStream_t stream, const KernelArguments& arguments, int direction) const {
    auto* const workspace = static_cast<std::byte*>(arguments.workspace);
    const auto at = [workspace](int64_t offset) { return reinterpret_cast<T*>(workspace + offset); };
    const int64_t hidden = r_.hidden, all = r_.gates * hidden;
    const DirectionOf d = OnDevice(r_, direction, r_.has_lengths ? Input<int32_t>(arguments, 4) : nullptr);
    const T* const bias = r_.has_bias ? Input<T>(arguments, 3) + direction * 2 * all : nullptr;
    const T* const w = Input<T>(arguments, 1) + direction * all * r_.input;
    const T* const weights = Input<T>(arguments, 2) + direction * all * hidden;
    const T* const reset_weights = weights + own_ * hidden * hidden;
    const Steps<T> s{at(gates_),
                     at(h_gates_),
                     bias,
                     bias == nullptr ? nullptr : bias + all,
                     at(kept_a_),
                     at(kept_b_),
                     at(h_),
                     at(c_),
                     at(direct_),
                     at(through_),
                     at(d_step_),
                     Rows(arguments, 2, direction, hidden),
                     Rows(arguments, 1, direction, all),
                     Cell::kHasMore ? Rows(arguments, 4, direction, hidden) : nullptr,
                     Input<T>(arguments, 7),
                     resets_};
    std::byte* const scratch = workspace + scratch_;
    RETURN_IF_ERROR(ClearRows(stream, s, d, all));
    RETURN_IF_ERROR(input_.Run(stream, Input<T>(arguments, 0), w, s.gates, scratch));
    RETURN_IF_ERROR(Begin(stream, d, s, Input<T>(arguments, 5), Input<T>(arguments, 6)));
    for (int64_t step = 0; step < r_.steps; ++step) {
      RETURN_IF_ERROR(state_.Run(stream, s.h, weights, at(h_gates_), scratch));
      if (resets_) {
        RETURN_IF_ERROR(Run(stream, ResetForward<T>, d, s, step));
        RETURN_IF_ERROR(reset_.Run(stream, s.direct, reset_weights, s.through, scratch));
      }
      RETURN_IF_ERROR(Run(stream, CellForward<T, Cell>, d, s, step));
    }
    RETURN_IF_ERROR(Begin(stream, d, s, Input<T>(arguments, 8), Input<T>(arguments, 9)));
    for (int64_t step = r_.steps; step-- > 0;) {
      if constexpr (Cell::kResets) {
        RETURN_IF_ERROR(Run(stream, ResetBackward<T>, d, s, step));
        if (resets_) RETURN_IF_ERROR(reset_grad_.Run(stream, s.direct, reset_weights, s.through, scratch));
      }
      RETURN_IF_ERROR(Run(stream, CellBackward<T, Cell>, d, s, step));
      RETURN_IF_ERROR(state_grad_.Run(stream, s.d_step, weights, s.h, scratch));
    }
    RETURN_IF_ERROR(pipec::Launch(EndState<T>, blocks_, kThreads, stream, d, s.h, Output<T>(arguments, 3)));
    if (Cell::kHasCell)
      RETURN_IF_ERROR(pipec::Launch(EndState<T>, blocks_, kThreads, stream, d, s.c, Output<T>(arguments, 4)));
    const RecurrentProduct& last = direction == 0 ? input_grad_ : input_grad_more_;
    return last.Run(stream, s.d_gates, w, Output<T>(arguments, 0), scratch);
  }

  absl::Status Run(cudaStream_t stream, void (*kernel)(DirectionOf, Steps<T>, int64_t, int64_t),
                   const DirectionOf& d, const Steps<T>& s, int64_t step) const {
    return pipec::Launch(kernel, blocks_, kThreads, stream, d, s, own_, step);
  }

  absl::Status Begin(cudaStream_t stream, const DirectionOf& d, const Steps<T>& s, const T* h,
                     const T* c) const {
    RETURN_IF_ERROR(pipec::Launch(BeginState<T>, blocks_, kThreads, stream, d, h, s.h));
    return pipec::Launch(BeginState<T>, blocks_, kThreads, stream, d, c, s.c);
  }

  // Steps behind a sequence's end change nothing.
  absl::Status ClearRows(cudaStream_t stream, const Steps<T>& s, const DirectionOf& d, int64_t all) const {
    if (d.lengths == nullptr) return absl::OkStatus();
    const int64_t row_bytes = r_.steps * r_.batch * static_cast<int64_t>(sizeof(T));
    RETURN_IF_CUDA_ERROR(cudaMemsetAsync(s.d_gates, 0, row_bytes * all, stream));
    RETURN_IF_CUDA_ERROR(cudaMemsetAsync(s.h_before, 0, row_bytes * r_.hidden, stream));
    if (Cell::kHasMore) RETURN_IF_CUDA_ERROR(cudaMemsetAsync(s.more, 0, row_bytes * r_.hidden, stream));
    return pipec::Launch(CheckLengths<T>, BlocksFor(r_.batch), kThreads, stream, d, site_);
  }

  const Recurrence r_;
  const bool resets_;
  const int64_t own_;  // gates that see h itself
  const dim3 blocks_;
  RecurrentProduct input_, state_, reset_, reset_grad_, state_grad_, input_grad_, input_grad_more_;
  FaultSite site_;
  // Offsets in the workspace, in bytes.
  int64_t gates_ = 0, kept_a_ = 0, kept_b_ = 0, h_gates_ = 0, d_step_ = 0, h_ = 0, c_ = 0, direct_ = 0,
          through_ = 0;
  int64_t scratch_ = 0, scratch_bytes_ = 0, workspace_bytes_ = 0;
};

template <typename Cell>
absl::StatusOr<std::unique_ptr<Kernel>> Make(const KernelSpec& spec, const Recurrence& r,
                                             CudaContext& context) {
  return ForWideFloats(spec, spec.inputs[0].type.dtype, [&](auto tag) {
    return RecurrentGradKernel<typename decltype(tag)::type, Cell>::Make(spec, r, context);
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareRnn(const KernelSpec& spec, CudaContext& context) {
  ASSIGN_OR_RETURN(const Recurrence r, ReadRnnGrad(spec));
  return Make<RnnGrad>(spec, r, context);
}
absl::StatusOr<std::unique_ptr<Kernel>> PrepareGru(const KernelSpec& spec, CudaContext& context) {
  ASSIGN_OR_RETURN(const Recurrence r, ReadGruGrad(spec));
  return Make<GruGrad>(spec, r, context);
}
absl::StatusOr<std::unique_ptr<Kernel>> PrepareLstm(const KernelSpec& spec, CudaContext& context) {
  ASSIGN_OR_RETURN(const Recurrence r, ReadLstmGrad(spec));
  return Make<LstmGrad>(spec, r, context);
}

}  // namespace

void RegisterRecurrentGradKernels(KernelRegistry& registry) {
  registry.Add("GRUGrad", kPipecDomain, PrepareGru);
  registry.Add("LSTMGrad", kPipecDomain, PrepareLstm);
  registry.Add("RNNGrad", kPipecDomain, PrepareRnn);
}

}  // namespace pipec::cuda
