// What MatMul, FusedMatMul and Gemm have in common: batches of matrix products, reduced to few axes.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "runtime/base/tensor_type.h"
#include "runtime/device/device.h"

namespace pipec {

// Y[b] (M x N) = alpha * A[b] (M x K) @ B[b] (K x N), or, if `add`, Y[b] += that. A and B lie row-major, or
// transposed if so marked; Y lies row-major. An operand's batch axis of length 1 against a longer one is
// repeated.
struct MatrixProduct {
  DType dtype = DType::kUndefined;   // of A and B
  DType result = DType::kUndefined;  // of Y: the same, or float32 of 16-bit floats
  Shape a_batch, b_batch, y_batch;   // of the same rank
  int64_t m = 1, k = 1, n = 1;
  bool transpose_a = false, transpose_b = false;
  float alpha = 1;
  bool add = false;

  int64_t batches() const { return NumElements(y_batch); }
};

// The product of operands of these types, by MatMul's rules: an operand of rank 1 is a row (A) or a column
// (B), the axes but the last two broadcast; transposition needs rank 2 or more. InvalidArgument if the shapes
// do not fit, naming both.
absl::StatusOr<MatrixProduct> ProductOf(const KernelSpec& spec, bool transpose_a, bool transpose_b);
// The shape of Y by the same rules: without the axes that operands of rank 1 lack.
Shape ResultShape(const TensorType& a, const TensorType& b, const MatrixProduct& product);

// The same product with the fewest batch axes: rows of a batch are more rows of A where B has no batch, and
// neighbouring axes that broadcast alike are one.
MatrixProduct Simplify(MatrixProduct product);

}  // namespace pipec
