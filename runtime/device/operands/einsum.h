// How Einsum is computed: the operands are multiplied from the first to the last, each time as a batch of matrix
// products: batch, the labels of both that are still needed; rows and columns, those of one; summed over, those of
// both that are not needed any more. What only one operand has and nobody needs is summed first, as a product with
// ones.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/tensor_type.h"
#include "runtime/device/device.h"
#include "runtime/device/operands/matrix_product.h"
#include "runtime/device/operands/move.h"

namespace pipec {

// In place of an operand: a single 1, or what lies in the workspace.
inline constexpr int kEinsumOnes = -1, kEinsumWorkspace = -2;

// A tensor on the way: an operand of the node, or what lies in the workspace.
struct EinsumTerm {
  int operand = kEinsumOnes;  // of the node, or one of the above
  int64_t offset = 0;         // bytes in the workspace
  std::vector<int> labels;
  Shape strides;  // by axis; 0 where it repeats
};

// Two terms, laid out for a product in the workspace, and the product; offsets in bytes there.
struct EinsumStep {
  EinsumTerm a, b;
  StridedMove move_a, move_b;
  int64_t a_offset = 0, b_offset = 0, y_offset = 0;
  MatrixProduct product;
};

struct EinsumPlan {
  std::vector<EinsumStep> steps;
  EinsumTerm last;
  StridedMove to_result;  // of the last term
  int64_t bytes = 0;      // of the workspace, without the products' own
};

// Everything is checked. Unimplemented for elements below 4 bytes and for more axes than a move has.
absl::StatusOr<EinsumPlan> EinsumPlanOf(const KernelSpec& spec);

}  // namespace pipec
