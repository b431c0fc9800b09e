// Det (X) -> (Y): the determinants of the matrices in X (..., M, M), by elimination with row pivots in
// float64.
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/kernels/slots.h"

namespace pipec::cpu {
namespace {

// Destroys `a`, (m, m).
double Determinant(int64_t m, double* a) {
  double det = 1;
  for (int64_t k = 0; k < m; ++k) {
    int64_t pivot = k;
    for (int64_t i = k + 1; i < m; ++i) {
      if (std::fabs(a[i * m + k]) > std::fabs(a[pivot * m + k])) pivot = i;
    }
    if (a[pivot * m + k] == 0) return 0;
    if (pivot != k) {
      for (int64_t j = k; j < m; ++j) std::swap(a[pivot * m + j], a[k * m + j]);
      det = -det;
    }
    det *= a[k * m + k];
    for (int64_t i = k + 1; i < m; ++i) {
      const double factor = a[i * m + k] / a[k * m + k];
      for (int64_t j = k + 1; j < m; ++j) a[i * m + j] -= factor * a[k * m + j];
    }
  }
  return det;
}

absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 1, .max_inputs = 1}));
  const TensorType& x = spec.inputs[0].type;
  const size_t rank = x.shape.size();
  if (rank < 2 || x.shape[rank - 1] != x.shape[rank - 2])
    return Invalid(spec, absl::StrCat("X is ", ToString(x), ", wanted square matrices"));
  const Shape outer(x.shape.begin(), x.shape.end() - 2);
  RETURN_IF_ERROR(CheckOutput(spec, 0, {x.dtype, outer}));
  const int64_t m = x.shape.back();
  const Slots slots(NumElements(outer), m * m * static_cast<int64_t>(sizeof(double)));
  return ForFloats(spec, x.dtype, [=](auto zero) {
    using T = decltype(zero);
    return MakeKernel(slots.workspace_bytes(), [=](const KernelArguments& arguments) {
      slots.Run(arguments.workspace, [&](int64_t matrix, void* memory) {
        double* const a = static_cast<double*>(memory);
        const T* const from = Input<T>(arguments, 0) + matrix * m * m;
        for (int64_t i = 0; i < m * m; ++i) a[i] = static_cast<double>(from[i]);
        Output<T>(arguments, 0)[matrix] = static_cast<T>(Determinant(m, a));
      });
      return absl::OkStatus();
    });
  });
}

}  // namespace

void RegisterDetKernels(KernelRegistry& registry) { registry.Add("Det", "", Prepare); }

}  // namespace pipec::cpu
