// ReduceSum, ReduceMean, ReduceSumSquare, ReduceProd, ReduceMax, ReduceMin.
//
// The order of every sum is fixed by the shape alone: a thread owns whole results, and a single sum over
// everything goes in blocks of fixed size.
#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/fold_columns.h"
#include "runtime/device/cpu/kernels/lanes.h"
#include "runtime/device/cpu/kernels/reduce_ops.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/kernels/typed.h"
#include "runtime/device/cpu/parallel_for.h"
#include "runtime/device/operands/check.h"
#include "runtime/device/operands/reduce_plan.h"

namespace pipec::cpu {
namespace {

constexpr int64_t kBlock = 1024;         // elements of a row folded in Part before they join the Total
constexpr int64_t kSingleBlock = 16384;  // elements of one partial result, where there is one result only

// total = the fold of n contiguous elements into it. Integers may be folded in any order.
template <typename Op, typename T>
void FoldRow(const T* x, int64_t n, typename Op::Total* total) {
  using Part = typename Op::Part;
  if constexpr (std::is_integral_v<T>) {
    typename Op::Total folded = *total;
    for (int64_t i = 0; i < n; ++i) {
      folded = Op::Combine(folded, static_cast<typename Op::Total>(Op::Load(x[i])));
    }
    *total = folded;
    return;
  }
  for (int64_t at = 0; at < n; at += kBlock) {
    const T* block = x + at;
    const Part part = Fold<Part>(
        std::min(kBlock, n - at), Part{Op::kFirst}, [](Part a, Part b) { return Op::Combine(a, b); },
        [block](int64_t i) { return Op::Load(block[i]); });
    *total = Op::Combine(*total, static_cast<typename Op::Total>(part));
  }
}

template <typename Op, typename T>
void ReduceAll(const ReducePlan& plan, const T* x, T* y, void* workspace) {
  using Total = typename Op::Total;
  auto* partial = static_cast<Total*>(workspace);
  const int64_t n = plan.reduced_elements;
  ParallelFor(n, kSingleBlock, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; at += kSingleBlock) {
      Total& total = partial[at / kSingleBlock];
      total = Op::kFirst;
      FoldRow<Op, T>(x + at, std::min(kSingleBlock, end - at), &total);
    }
  });
  Total total = Op::kFirst;
  for (int64_t i = 0; i * kSingleBlock < n; ++i) total = Op::Combine(total, partial[i]);
  *y = Op::Finish(total, n);
}

template <typename Op, typename T>
void ReduceRows(const ReducePlan& plan, const T* x, T* y) {
  const int outer_rank = plan.reduced_rank - 1;
  const int64_t row = plan.reduced[outer_rank].size;
  const int64_t rows = row == 0 ? 0 : plan.reduced_elements / row;
  ParallelFor(plan.kept_elements,
              std::max<int64_t>(1, kElementGrain / std::max<int64_t>(plan.reduced_elements, 1)),
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  const T* from = x + OffsetOf(plan.kept.data(), plan.kept_rank, i);
                  typename Op::Total total = Op::kFirst;
                  for (int64_t r = 0; r < rows; ++r) {
                    FoldRow<Op, T>(from + OffsetOf(plan.reduced.data(), outer_rank, r), row, &total);
                  }
                  y[i] = Op::Finish(total, plan.reduced_elements);
                }
              });
}

template <typename Op, typename T>
void ReduceColumns(const ReducePlan& plan, const T* x, T* y) {
  // The innermost kept axis lies in columns; the innermost reduced one, if any, in rows.
  const int64_t width = plan.kept_rank > 0 ? plan.kept[plan.kept_rank - 1].size : 1;
  const int kept_rank = std::max(plan.kept_rank - 1, 0), outer_rank = std::max(plan.reduced_rank - 1, 0);
  const ReduceAxis inner = plan.reduced_rank > 0 ? plan.reduced[outer_rank] : ReduceAxis{1, 0};
  const int64_t outer = inner.size == 0 ? 0 : plan.reduced_elements / inner.size;
  const int64_t tiles = (width + kColumns - 1) / kColumns;
  const int64_t work = std::min(width, kColumns) * std::max<int64_t>(plan.reduced_elements, 1);
  if (width == 0) return;
  ParallelFor(plan.kept_elements / width * tiles, std::max<int64_t>(1, kElementGrain / work),
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  const int64_t column = i % tiles * kColumns, columns = std::min(kColumns, width - column);
                  const T* from = x + OffsetOf(plan.kept.data(), kept_rank, i / tiles) + column;
                  T* to = y + i / tiles * width + column;
                  typename Op::Total totals[kColumns];
                  std::fill_n(totals, columns, Op::kFirst);
                  for (int64_t r = 0; r < outer; ++r) {
                    FoldColumns<Op, T>(from + OffsetOf(plan.reduced.data(), outer_rank, r), inner.size,
                                       inner.stride, columns, totals);
                  }
                  for (int64_t c = 0; c < columns; ++c) to[c] = Op::Finish(totals[c], plan.reduced_elements);
                }
              });
}

template <typename Op, typename T>
void Loop(const ReducePlan& plan, const void* x, void* y, void* workspace) {
  const auto* from = static_cast<const T*>(x);
  auto* to = static_cast<T*>(y);
  if (!plan.inner_reduced) return ReduceColumns<Op, T>(plan, from, to);
  if (plan.kept_elements == 1) return ReduceAll<Op, T>(plan, from, to, workspace);
  ReduceRows<Op, T>(plan, from, to);
}

class ReduceKernel : public Kernel {
 public:
  using Loop = void (*)(const ReducePlan& plan, const void* x, void* y, void* workspace);

  ReduceKernel(const KernelSpec& spec, Loop loop)
      : loop_(loop),
        x_(spec.inputs[0].type.shape),
        y_(spec.outputs[0].type.shape),
        keep_dims_(spec.attributes.Int("keepdims", 1) != 0),
        noop_(spec.attributes.Int("noop_with_empty_axes", 0) != 0) {
    if (Has(spec, 1)) axes_ = spec.inputs[1].type;
  }

  // Finds the axes from the contents of input 1 (null if there is none), once and for all if they are known
  // at load.
  absl::Status Place(const void* axes, bool for_good) {
    ASSIGN_OR_RETURN(
        plan_, MakeReducePlan(x_, axes == nullptr ? Ints() : ReadInts(axes_, axes), keep_dims_, noop_, y_));
    placed_ = for_good;
    return absl::OkStatus();
  }

  // Partial results of a single sum; 8 bytes hold any Total.
  int64_t workspace_bytes() const override { return (NumElements(x_) / kSingleBlock + 1) * 8; }

  absl::Status Launch(Stream&, const KernelArguments& arguments) override {
    if (!placed_) RETURN_IF_ERROR(Place(arguments.inputs[1], /*for_good=*/false));
    loop_(plan_, arguments.inputs[0], arguments.outputs[0], arguments.workspace);
    return absl::OkStatus();
  }

 private:
  const Loop loop_;
  const Shape x_, y_;
  TensorType axes_;
  const bool keep_dims_, noop_;
  bool placed_ = false;
  ReducePlan plan_;
};

template <template <typename> class Op>
absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 1, .max_inputs = 2}));
  const DType dtype = spec.inputs[0].type.dtype;
  const auto loop =
      ForType<ReduceKernel::Loop>(typename Op<float>::Types(), dtype, [](auto t) -> ReduceKernel::Loop {
        using T = typename decltype(t)::type;
        return Loop<Op<T>, T>;
      });
  if (loop == nullptr) return NoKernelFor(spec, dtype);
  if (spec.outputs[0].type.dtype != dtype) return CheckOutput(spec, 0, {dtype, spec.outputs[0].type.shape});
  if (Has(spec, 1) && !IsSmallInts(spec.inputs[1].type)) {
    return Invalid(spec,
                   absl::StrCat("input 1 is ", ToString(spec.inputs[1].type), ", wanted a list of axes"));
  }
  auto kernel = std::make_unique<ReduceKernel>(spec, loop);
  if (!Has(spec, 1) || spec.inputs[1].constant != nullptr) {
    const void* axes = Has(spec, 1) ? spec.inputs[1].constant : nullptr;
    if (absl::Status status = kernel->Place(axes, /*for_good=*/true); !status.ok())
      return Invalid(spec, status.message());
  }
  return kernel;
}

}  // namespace

void RegisterReduceKernels(KernelRegistry& registry) {
  registry.Add("ReduceMax", "", Prepare<MaxReduction>);
  registry.Add("ReduceMean", "", Prepare<MeanReduction>);
  registry.Add("ReduceMin", "", Prepare<MinReduction>);
  registry.Add("ReduceProd", "", Prepare<ProdReduction>);
  registry.Add("ReduceSum", "", Prepare<SumReduction>);
  registry.Add("ReduceSumSquare", "", Prepare<SumSquareReduction>);
}

}  // namespace pipec::cpu
