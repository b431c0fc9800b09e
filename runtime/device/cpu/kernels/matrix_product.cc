#include "runtime/device/cpu/kernels/matrix_product.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/lanes.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/parallel_for.h"

namespace pipec::cpu {
namespace {

// Element offsets of an operand's matrices: one axis of y_batch takes `step` elements, 0 where the operand
// repeats.
struct BatchSteps {
  Shape dims, steps;

  BatchSteps(const Shape& y_batch, const Shape& operand_batch, int64_t matrix)
      : dims(y_batch), steps(y_batch.size()) {
    for (size_t i = y_batch.size(); i-- > 0;) {
      steps[i] = operand_batch[i] == 1 ? 0 : matrix;
      matrix *= operand_batch[i];
    }
  }
  int64_t At(int64_t batch) const {
    int64_t at = 0;
    for (size_t i = dims.size(); i-- > 0; batch /= dims[i]) at += batch % dims[i] * steps[i];
    return at;
  }
};

// One row of Y; `a` is its row of A, a_step elements from one to the next.
template <typename T>
void ProductRow(const MatrixProduct& product, const T* a, int64_t a_step, const T* b, T* y) {
  const T alpha = static_cast<T>(product.alpha);
  const int64_t k = product.k, n = product.n;
  if (product.transpose_b) {
    for (int64_t j = 0; j < n; ++j) {
      const T* column = b + j * k;
      const T sum = Sum<T>(k, [=](int64_t i) { return a[i * a_step] * column[i]; });
      y[j] = product.add ? y[j] + alpha * sum : alpha * sum;
    }
    return;
  }
  if (!product.add) std::fill(y, y + n, T{0});
  for (int64_t i = 0; i < k; ++i) {
    const T factor = alpha * a[i * a_step];
    const T* row = b + i * n;
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) y[j] += factor * row[j];
  }
}

template <typename T>
std::unique_ptr<Kernel> MakeLoopProduct(const MatrixProduct& product) {
  const BatchSteps a_steps(product.y_batch, product.a_batch, product.m * product.k);
  const BatchSteps b_steps(product.y_batch, product.b_batch, product.k * product.n);
  return MakeKernel(0, [=](const KernelArguments& arguments) {
    const T* const a = Input<T>(arguments, 0);
    const T* const b = Input<T>(arguments, 1);
    T* const y = Output<T>(arguments, 0);
    const int64_t grain = std::max<int64_t>(1, 65536 / std::max<int64_t>(1, product.k * product.n));
    ParallelFor(product.batches() * product.m, grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t batch = row / product.m, i = row % product.m;
        const T* const a_row = a + a_steps.At(batch) + (product.transpose_a ? i : i * product.k);
        ProductRow(product, a_row, product.transpose_a ? product.m : 1, b + b_steps.At(batch),
                   y + row * product.n);
      }
    });
    return absl::OkStatus();
  });
}

}  // namespace

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

absl::StatusOr<std::unique_ptr<Kernel>> MakeProduct(const KernelSpec& spec, MatrixProduct product) {
  product = Simplify(product);
  if (product.batches() == 0 || product.m == 0 || product.n == 0 || (product.k == 0 && product.add)) {
    return MakeKernel(0, [](const KernelArguments&) { return absl::OkStatus(); });
  }
  if (product.k == 0) {
    const int64_t bytes = product.batches() * product.m * product.n * SizeOf(product.result);
    return MakeKernel(0, [bytes](const KernelArguments& arguments) {
      std::memset(arguments.outputs[0], 0, bytes);
      return absl::OkStatus();
    });
  }
  switch (product.dtype) {
    case DType::kFloat32:
    case DType::kBFloat16:
    case DType::kFloat16:
      return MakeOneDnnProduct(product);
    case DType::kFloat64:
      return MakeLoopProduct<double>(product);
    case DType::kInt32:
      return MakeLoopProduct<int32_t>(product);
    case DType::kInt64:
      return MakeLoopProduct<int64_t>(product);
    case DType::kUint32:
      return MakeLoopProduct<uint32_t>(product);
    case DType::kUint64:
      return MakeLoopProduct<uint64_t>(product);
    default:
      return NoKernelFor(spec, product.dtype);
  }
}

}  // namespace pipec::cpu
