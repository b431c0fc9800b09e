// Operands of indices, int32 or int64, which may count from the end. One outside its axis leaves a note, and what
// it would have moved is left out.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/device/cuda/kernels/elements.cuh"
#include "runtime/device/cuda/kernels/make_kernel.h"

namespace pipec::cuda {

struct IndexReader {
  bool is_int64;
  FaultSite fault;

  // Of operand k; `bounds`: what an index ought to be in, for the message.
  static IndexReader Of(const KernelSpec& spec, int k, int64_t dim, CudaContext& context) {
    return {spec.inputs[k].type.dtype == DType::kInt64,
            context.AddFaultSite(spec, "index", absl::StrCat("in [", -dim, ",", dim - 1, "]"))};
  }

  // Index i of the operand on an axis of `dim` places, or -1.
  __device__ __forceinline__ int64_t At(const void* indices, int64_t i, int64_t dim) const {
    const int64_t index =
        is_int64 ? static_cast<const int64_t*>(indices)[i] : static_cast<const int32_t*>(indices)[i];
    if (index >= -dim && index < dim) return index < 0 ? index + dim : index;
    LeaveNote(fault, index, i);
    return -1;
  }
};

// A tuple of indices into the first axes of a tensor.
struct TupleReader {
  int axes;
  int64_t dims[kMaxRank];
  FaultSite fault;

  static TupleReader Of(const KernelSpec& spec, const Shape& dims, CudaContext& context) {
    TupleReader reader{.axes = static_cast<int>(dims.size())};
    for (int i = 0; i < reader.axes; ++i) reader.dims[i] = dims[i];
    reader.fault = context.AddFaultSite(spec, "index", absl::StrCat("within the axes ", ToString(dims)));
    return reader;
  }

  // The slice that tuple i means, or -1.
  __device__ __forceinline__ int64_t At(const int64_t* indices, int64_t i) const {
    int64_t at = 0;
    for (int axis = 0; axis < axes; ++axis) {
      const int64_t index = indices[i * axes + axis], dim = dims[axis];
      if (index < -dim || index >= dim) {
        LeaveNote(fault, index, i * axes + axis);
        return -1;
      }
      at = at * dim + (index < 0 ? index + dim : index);
    }
    return at;
  }
};

}  // namespace pipec::cuda
