#include "runtime/device/operands/matrix_product.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/operands/check.h"

namespace pipec {

absl::StatusOr<MatrixProduct> ProductOf(const KernelSpec& spec, bool transpose_a, bool transpose_b) {
  const TensorType &a = spec.inputs[0].type, &b = spec.inputs[1].type;
  const auto wrong = [&](absl::string_view why) {
    return Invalid(spec, absl::StrCat("operands are ", ToString(a), " and ", ToString(b), ": ", why));
  };
  if (a.dtype != b.dtype) return wrong("the element types differ");
  if (a.shape.empty() || b.shape.empty()) return wrong("a scalar is no matrix");
  MatrixProduct product;
  product.dtype = product.result = a.dtype;
  product.transpose_a = transpose_a && a.shape.size() > 1;
  product.transpose_b = transpose_b && b.shape.size() > 1;
  Shape a_shape = a.shape, b_shape = b.shape;
  if (a_shape.size() == 1) a_shape.insert(a_shape.begin(), 1);
  if (b_shape.size() == 1) b_shape.push_back(1);
  const size_t rank = std::max(a_shape.size(), b_shape.size());
  a_shape.insert(a_shape.begin(), rank - a_shape.size(), 1);
  b_shape.insert(b_shape.begin(), rank - b_shape.size(), 1);
  product.m = a_shape[rank - (product.transpose_a ? 1 : 2)];
  product.k = a_shape[rank - (product.transpose_a ? 2 : 1)];
  product.n = b_shape[rank - (product.transpose_b ? 2 : 1)];
  if (b_shape[rank - (product.transpose_b ? 1 : 2)] != product.k) return wrong("the inner dimensions differ");
  product.a_batch.assign(a_shape.begin(), a_shape.end() - 2);
  product.b_batch.assign(b_shape.begin(), b_shape.end() - 2);
  for (size_t i = 0; i + 2 < rank; ++i) {
    if (a_shape[i] != b_shape[i] && a_shape[i] != 1 && b_shape[i] != 1)
      return wrong("the batches do not broadcast");
    product.y_batch.push_back(a_shape[i] == 1 ? b_shape[i] : a_shape[i]);
  }
  return product;
}

Shape ResultShape(const TensorType& a, const TensorType& b, const MatrixProduct& product) {
  Shape shape = product.y_batch;
  if (a.shape.size() > 1) shape.push_back(product.m);
  if (b.shape.size() > 1) shape.push_back(product.n);
  return shape;
}

MatrixProduct Simplify(MatrixProduct product) {
  if (NumElements(product.b_batch) == 1 && !product.transpose_a) {
    product.m *= product.batches();
    product.a_batch = product.b_batch = product.y_batch = {};
    return product;
  }
  Shape a, b, y;
  for (size_t i = 0; i < product.y_batch.size(); ++i) {
    const int64_t da = product.a_batch[i], db = product.b_batch[i], dy = product.y_batch[i];
    if (dy == 1) continue;
    if (!y.empty() && (a.back() == y.back()) == (da == dy) && (b.back() == y.back()) == (db == dy)) {
      a.back() *= da, b.back() *= db, y.back() *= dy;
    } else {
      a.push_back(da), b.push_back(db), y.push_back(dy);
    }
  }
  product.a_batch = a, product.b_batch = b, product.y_batch = y;
  return product;
}

}  // namespace pipec
