// What Prepare asks of an instruction before it believes it. All errors name the node and the operand.
#pragma once

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/base/tensor_type.h"
#include "runtime/device/device.h"

namespace pipec {

inline constexpr int kMaxRank = 8;

// Small integers read at launch: no heap below 16 of them, which kMaxRank guarantees.
using Ints = absl::InlinedVector<int64_t, 2 * kMaxRank>;

struct OperandCounts {
  int min_inputs, max_inputs;  // the first min_inputs must be present
  int min_outputs = 1, max_outputs = 1;
};

// InvalidArgument for a wrong number of operands, an absent required one, a negative dimension; Unimplemented
// for a rank above kMaxRank.
absl::Status CheckOperands(const KernelSpec& spec, const OperandCounts& counts);

// InvalidArgument unless result k has exactly this type.
absl::Status CheckOutput(const KernelSpec& spec, int k, const TensorType& wanted);
// InvalidArgument unless operand k has this element type.
absl::Status CheckInputType(const KernelSpec& spec, int k, DType wanted);

// "node 'n' (Op): " + what.
absl::Status Invalid(const KernelSpec& spec, absl::string_view what);
// There is no kernel of this op for elements of this type.
absl::Status NoKernelFor(const KernelSpec& spec, DType dtype);

// An axis in [-rank, rank) as one in [0, rank).
absl::StatusOr<int> NormaliseAxis(int64_t axis, int rank);

// The contents of a vector or scalar of int32 or int64. The caller has checked type and size with
// IsSmallInts.
Ints ReadInts(const TensorType& type, const void* data);
// Whether `type` is at most 16 elements of int32 or int64, of rank 0 or 1.
bool IsSmallInts(const TensorType& type);

// Whether operand k, result k is there at all.
bool Has(const KernelSpec& spec, int k);
bool HasOutput(const KernelSpec& spec, int k);

// InvalidArgument unless operand k is absent or has exactly this type.
absl::Status CheckInput(const KernelSpec& spec, int k, const TensorType& wanted);
// The same for a type of any shape with so many elements.
absl::Status CheckInputElements(const KernelSpec& spec, int k, DType dtype, int64_t elements);
absl::Status CheckOutputElements(const KernelSpec& spec, int k, DType dtype, int64_t elements);
// InvalidArgument unless operand k holds indices: int32 or int64.
absl::Status CheckIndexType(const KernelSpec& spec, int k);

// Operand k as elements of type T; null where it is absent.
template <typename T>
const T* Input(const KernelArguments& arguments, int k) {
  return static_cast<const T*>(arguments.inputs[k]);
}
template <typename T>
T* Output(const KernelArguments& arguments, int k) {
  return static_cast<T*>(arguments.outputs[k]);
}

}  // namespace pipec
