// Class labels against the rows of logits on the GPU: what LabelledRows is on the CPU.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cuda/kernels/elements.cuh"
#include "runtime/device/cuda/kernels/make_kernel.h"
#include "runtime/device/operands/labels.h"
#include "runtime/device/scalars.h"

namespace pipec::cuda {

struct Labels {
  int64_t rows, classes, inner;  // class c of row r lies at At(r) + c * inner
  int64_t count, sample_inner;   // samples of the labels, and how many labels of one lie together
  int64_t ignore_index;
  bool known_samples, has_ignore_index, is_int64;
  FaultSite fault;

  static absl::StatusOr<Labels> Of(const KernelSpec& spec, const TensorType& logits, const TensorType& labels,
                                   CudaContext& context) {
    ASSIGN_OR_RETURN(const LabelledRows rows, LabelledRows::Of(spec, logits.shape, labels, -1));
    ASSIGN_OR_RETURN(const Samples samples, Samples::Of(spec, labels.shape));
    Labels made{};
    made.rows = rows.rows();
    made.classes = rows.classes();
    made.inner = rows.view().inner;
    made.known_samples = samples.known;
    made.count = samples.count;
    made.sample_inner = samples.inner;
    made.has_ignore_index = spec.attributes.Has("ignore_index");
    made.ignore_index = spec.attributes.Int("ignore_index");
    made.is_int64 = labels.dtype == DType::kInt64;
    made.fault = context.AddFaultSite(
        spec, "label",
        absl::StrCat("in [0, ", made.classes, ")",
                     made.has_ignore_index ? absl::StrCat(" and not ignore_index ", made.ignore_index) : ""));
    return made;
  }

  __device__ int64_t At(int64_t row) const { return row / inner * classes * inner + row % inner; }

  // The label of a row that counts, else -1: it is padding, ignored, or no class, which leaves a note. Where a
  // block or a warp has a row, one of its threads leaves it.
  __device__ int64_t Counted(const void* labels, int64_t row, const StepScalars* scalars) const {
    return Find(labels, row, scalars, threadIdx.x == 0);
  }
  __device__ int64_t CountedByThread(const void* labels, int64_t row, const StepScalars* scalars) const {
    return Find(labels, row, scalars, true);
  }

 private:
  __device__ int64_t Find(const void* labels, int64_t row, const StepScalars* scalars, bool notes) const {
    if (known_samples && row / sample_inner % count >= scalars->valid_samples) return -1;
    const int64_t label =
        is_int64 ? static_cast<const int64_t*>(labels)[row] : static_cast<const int32_t*>(labels)[row];
    if (has_ignore_index && label == ignore_index) return -1;
    if (label >= 0 && label < classes) return label;
    if (notes) LeaveNote(fault, label, row);
    return -1;
  }
};

// Classes of a row that one warp still takes, where a block takes a row.
inline constexpr int64_t kWarpRow = 1024;

}  // namespace pipec::cuda
