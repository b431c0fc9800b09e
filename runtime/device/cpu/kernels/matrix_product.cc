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
