// What MatMul, FusedMatMul, MatMulWeightGrad and Gemm have in common: batches of matrix products, reduced to few
// axes, and what is added to them.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "runtime/base/tensor_type.h"
#include "runtime/device/device.h"

namespace pipec {

// What becomes of a product's elements, its bias added: Gelu's tanh form of them, or they times that one's slope at
// another operand's elements.
enum class ProductActivation { kNone, kGelu, kGeluGrad };

// Y[b] (M x N) = alpha * A[b] (M x K) @ B[b] (K x N), or, if `add`, Y[b] += that; if `bias`, with operand 2, N
// elements, added to each row. A and B lie row-major, or
// transposed if so marked; Y lies row-major. An operand's batch axis of length 1 against a longer one is
// repeated.
struct MatrixProduct {
  DType dtype = DType::kUndefined;   // of A and B
  DType result = DType::kUndefined;  // of Y: the same, or float32 of 16-bit floats
  Shape a_batch, b_batch, y_batch;   // of the same rank
  int64_t m = 1, k = 1, n = 1;
  bool transpose_a = false, transpose_b = false;
  float alpha = 1;
  bool add = false, bias = false;
  ProductActivation activation = ProductActivation::kNone;

  int64_t batches() const { return NumElements(y_batch); }
};

// The product of operands of these types, by MatMul's rules: an operand of rank 1 is a row (A) or a column
// (B), the axes but the last two broadcast; transposition needs rank 2 or more. InvalidArgument if the shapes
// do not fit, naming both.
absl::StatusOr<MatrixProduct> ProductOf(const KernelSpec& spec, bool transpose_a, bool transpose_b);
// The shape of Y by the same rules: without the axes that operands of rank 1 lack.
Shape ResultShape(const TensorType& a, const TensorType& b, const MatrixProduct& product);

// What lies under Y, as rows by columns: element (row, column) is operand 2's at row * row_step + column * column_step.
struct Addend {
  int64_t rows = 0, columns = 0;          // of Y
  int64_t row_step = 0, column_step = 0;  // 0 where it repeats
  float beta = 1;                         // its factor

  // The same for each row, and as it is: what libraries call a bias.
  bool is_bias() const { return row_step == 0 && column_step == 1 && beta == 1; }
};

// The products of the three ops, with their results checked. InvalidArgument in the words of ProductOf and
// CheckOutput; `addend` is of a product with operand 2 that has a share in it, else absent. FusedMatMul's operand 3 is
// where kGeluGrad takes the slope: of Y's type, and without a bias.
struct AddedProduct {
  MatrixProduct product;
  std::optional<Addend> addend;
};
absl::StatusOr<AddedProduct> ReadMatMul(const KernelSpec& spec);
absl::StatusOr<AddedProduct> ReadFusedMatMul(const KernelSpec& spec);
absl::StatusOr<AddedProduct> ReadGemm(const KernelSpec& spec);

// MatMulWeightGrad (dY, X) -> (dW, dBias): the product of X or dY, transposed, with the other.
struct WeightGradient {
  MatrixProduct product;
  bool dy_first = false;          // the product is that of operands 0 and 1, not of 1 and 0
  int64_t rows = 0, columns = 0;  // of dY
};
absl::StatusOr<WeightGradient> ReadMatMulWeightGrad(const KernelSpec& spec);

// The same product with the fewest batch axes: rows of a batch are more rows of A where B has no batch, and
// neighbouring axes that broadcast alike are one.
MatrixProduct Simplify(MatrixProduct product);

}  // namespace pipec
