#include "runtime/device/operands/matrix_product.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/base/small_floats.h"
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

namespace {

absl::Status CheckResult(const KernelSpec& spec, const MatrixProduct& product) {
  const Shape shape = ResultShape(spec.inputs[0].type, spec.inputs[1].type, product);
  return CheckOutput(spec, 0, {product.result, shape});
}

// The attribute `to`.
absl::Status ReadResultType(const KernelSpec& spec, MatrixProduct& product) {
  product.result = static_cast<DType>(spec.attributes.Int("to", static_cast<int64_t>(product.dtype)));
  if (product.result == product.dtype || (product.result == DType::kFloat32 && IsSmallFloat(product.dtype))) {
    return absl::OkStatus();
  }
  return NoKernelFor(spec, product.result);
}

// The attribute `activation`, and whether the operands are those that it asks for.
absl::Status ReadActivation(const KernelSpec& spec, MatrixProduct& product) {
  const std::string name = spec.attributes.String("activation");
  if (name == "GeluTanh") {
    product.activation = ProductActivation::kGelu;
  } else if (name == "GeluTanhGrad") {
    product.activation = ProductActivation::kGeluGrad;
  } else if (!name.empty()) {
    return Invalid(spec, absl::StrCat("activation is '", name, "', wanted 'GeluTanh' or 'GeluTanhGrad'"));
  }
  const bool gradient = product.activation == ProductActivation::kGeluGrad;
  if (gradient != Has(spec, 3) || (gradient && Has(spec, 2)))
    return Invalid(spec, "operand 3 is for activation 'GeluTanhGrad', which has one, and no bias");
  return CheckInput(spec, 3, spec.outputs[0].type);
}

}  // namespace

absl::StatusOr<AddedProduct> ReadMatMul(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {2, 2}));
  ASSIGN_OR_RETURN(const MatrixProduct product, ProductOf(spec, false, false));
  RETURN_IF_ERROR(CheckResult(spec, product));
  return AddedProduct{product};
}

absl::StatusOr<AddedProduct> ReadFusedMatMul(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {2, 4}));
  ASSIGN_OR_RETURN(MatrixProduct product,
                   ProductOf(spec, spec.attributes.Int("trans_a") != 0, spec.attributes.Int("trans_b") != 0));
  product.alpha = spec.attributes.Float("alpha", 1);
  RETURN_IF_ERROR(ReadResultType(spec, product));
  RETURN_IF_ERROR(CheckResult(spec, product));
  RETURN_IF_ERROR(ReadActivation(spec, product));
  AddedProduct added{product};
  if (Has(spec, 2)) {
    RETURN_IF_ERROR(CheckInput(spec, 2, {product.result, {product.n}}));
    added.addend = Addend{.rows = product.batches() * product.m, .columns = product.n, .column_step = 1};
  }
  return added;
}

absl::StatusOr<AddedProduct> ReadGemm(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {2, 3}));
  if (spec.inputs[0].type.shape.size() != 2 || spec.inputs[1].type.shape.size() != 2) {
    return Invalid(spec, absl::StrCat("operands are ", ToString(spec.inputs[0].type), " and ",
                                      ToString(spec.inputs[1].type), ", wanted matrices"));
  }
  ASSIGN_OR_RETURN(MatrixProduct product,
                   ProductOf(spec, spec.attributes.Int("transA") != 0, spec.attributes.Int("transB") != 0));
  product.alpha = spec.attributes.Float("alpha", 1);
  const TensorType y{product.dtype, {product.m, product.n}};
  RETURN_IF_ERROR(CheckOutput(spec, 0, y));
  AddedProduct added{product};
  const float beta = spec.attributes.Float("beta", 1);
  if (!Has(spec, 2) || beta == 0) return added;
  const TensorType& c = spec.inputs[2].type;
  Shape shape = c.shape;
  if (shape.size() < 2) shape.insert(shape.begin(), 2 - shape.size(), 1);
  if (c.dtype != y.dtype || shape.size() != 2 || (shape[0] != 1 && shape[0] != y.shape[0]) ||
      (shape[1] != 1 && shape[1] != y.shape[1])) {
    return Invalid(spec, absl::StrCat("C is ", ToString(c), ", which does not broadcast to ", ToString(y)));
  }
  added.addend = Addend{y.shape[0], y.shape[1], shape[0] == 1 ? 0 : shape[1], shape[1] == 1 ? 0 : 1, beta};
  return added;
}

absl::StatusOr<WeightGradient> ReadMatMulWeightGrad(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {2, 2, 2, 2}));
  const TensorType &dy = spec.inputs[0].type, &x = spec.inputs[1].type;
  if (dy.shape.size() != 2 || x.shape.size() != 2 || dy.shape[0] != x.shape[0] || dy.dtype != x.dtype) {
    return Invalid(spec, absl::StrCat("dY is ", ToString(dy), " and X ", ToString(x),
                                      ", wanted matrices of one type and of as many rows"));
  }
  WeightGradient gradient{
      .dy_first = spec.attributes.Int("trans_b") != 0, .rows = dy.shape[0], .columns = dy.shape[1]};
  MatrixProduct& product = gradient.product;
  product.dtype = dy.dtype;
  RETURN_IF_ERROR(ReadResultType(spec, product));
  product.m = gradient.dy_first ? dy.shape[1] : x.shape[1];
  product.k = gradient.rows;
  product.n = gradient.dy_first ? x.shape[1] : dy.shape[1];
  product.transpose_a = true;
  RETURN_IF_ERROR(CheckOutput(spec, 0, {product.result, {product.m, product.n}}));
  RETURN_IF_ERROR(CheckOutput(spec, 1, {product.result, {gradient.columns}}));
  return gradient;
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
