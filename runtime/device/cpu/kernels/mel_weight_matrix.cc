// MelWeightMatrix (num_mel_bins, dft_length, sample_rate, lower_edge_hertz, upper_edge_hertz) -> (Y):
// triangles that overlap by half, equally wide in mel, (dft_length / 2 + 1, num_mel_bins).
#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/register.h"

namespace pipec::cpu {
namespace {

double MelOf(double hertz) { return 2595 * std::log10(1 + hertz / 700); }

struct Mel {
  int64_t bins = 0, rows = 0;    // of Y
  int64_t length = 0, rate = 0;  // dft_length, sample_rate
  double low = 0, step = 0;

  // The row where triangle `at` begins; at + 1: its peak, at + 2: its end.
  double Row(int64_t at) const {
    const double hertz = 700 * (std::pow(10, (low + static_cast<double>(at) * step) / 2595) - 1);
    return std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate));
  }
  double Weight(double row, double begin, double peak, double end) const {
    if (row >= peak && row < end) return (end - row) / (end - peak);
    if (begin == peak) return row == peak ? 1 : 0;
    return row >= begin && row <= peak ? (row - begin) / (peak - begin) : 0;
  }
};

double ReadFloat(DType dtype, const void* data) {
  return dtype == DType::kFloat64 ? *static_cast<const double*>(data) : *static_cast<const float*>(data);
}

absl::StatusOr<Mel> ReadMel(const std::vector<TensorType>& types, const TensorType& y,
                            const KernelArguments& arguments) {
  int64_t ints[3];
  for (int k = 0; k < 3; ++k) ints[k] = ReadInts(types[k], arguments.inputs[k])[0];
  const double lower = ReadFloat(types[3].dtype, arguments.inputs[3]),
               upper = ReadFloat(types[4].dtype, arguments.inputs[4]);
  Mel mel{.bins = ints[0], .rows = ints[1] / 2 + 1, .length = ints[1], .rate = ints[2]};
  if (ints[1] < 0 || mel.rows != y.shape[0] || mel.bins != y.shape[1] || mel.rate < 1 || !(lower >= 0) ||
      !(upper >= lower) || std::isinf(upper)) {
    return absl::InvalidArgumentError(absl::StrCat(mel.bins, " mel bins of a transform of ", mel.length,
                                                   " at ", mel.rate, " Hz from ", lower, " to ", upper,
                                                   " Hz for ", ToString(y)));
  }
  mel.low = MelOf(lower);
  mel.step = (MelOf(upper) - mel.low) / static_cast<double>(mel.bins + 2);
  if (mel.bins > 0 && mel.Row(mel.bins + 1) > static_cast<double>(mel.rows)) {
    return absl::InvalidArgumentError(
        absl::StrCat("upper_edge_hertz ", upper, " is beyond half of the sample rate ", mel.rate));
  }
  return mel;
}

absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 5, .max_inputs = 5}));
  std::vector<TensorType> types;
  for (int k = 0; k < 5; ++k) {
    const TensorType& type = spec.inputs[k].type;
    const bool is_float = type.dtype == DType::kFloat32 || type.dtype == DType::kFloat64;
    if (type.elements() != 1 || (k < 3 ? !IsSmallInts(type) : !is_float))
      return Invalid(spec, absl::StrCat("input ", k, " is ", ToString(type), ", wanted one ",
                                        k < 3 ? "integer" : "float"));
    types.push_back(type);
  }
  const TensorType& y = spec.outputs[0].type;
  if (y.shape.size() != 2)
    return Invalid(spec, absl::StrCat("the result is ", ToString(y), ", wanted a matrix"));
  return ForFloats(spec, y.dtype, [types, y](auto zero) {
    using T = decltype(zero);
    return MakeKernel(0, [types, y](const KernelArguments& arguments) -> absl::Status {
      ASSIGN_OR_RETURN(const Mel mel, ReadMel(types, y, arguments));
      T* const matrix = Output<T>(arguments, 0);
      for (int64_t bin = 0; bin < mel.bins; ++bin) {
        const double begin = mel.Row(bin), peak = mel.Row(bin + 1), end = mel.Row(bin + 2);
        for (int64_t row = 0; row < mel.rows; ++row)
          matrix[row * mel.bins + bin] =
              static_cast<T>(mel.Weight(static_cast<double>(row), begin, peak, end));
      }
      return absl::OkStatus();
    });
  });
}

}  // namespace

void RegisterMelWeightMatrixKernels(KernelRegistry& registry) {
  registry.Add("MelWeightMatrix", "", Prepare);
}

}  // namespace pipec::cpu
