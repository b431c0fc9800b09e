#include "tests/cuda/kernel_case.h"

#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/base/small_floats.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

double At(DType dtype, const std::string& bytes, int64_t i) {
  const auto as = [&](auto value) {
    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    return value;
  };
  switch (dtype) {
    case DType::kFloat32:
      return as(float{});
    case DType::kFloat64:
      return as(double{});
    case DType::kFloat16:
      return ToFloat(as(Float16{}));
    case DType::kBFloat16:
      return ToFloat(as(BFloat16{}));
    case DType::kInt32:
      return as(int32_t{});
    case DType::kUint32:
      return as(uint32_t{});
    case DType::kInt16:
      return as(int16_t{});
    case DType::kUint16:
      return as(uint16_t{});
    case DType::kInt8:
      return as(int8_t{});
    case DType::kUint8:
    case DType::kBool:
      return as(uint8_t{});
    default:
      return static_cast<double>(as(int64_t{}));
  }
}

// Into the device's memory.
absl::StatusOr<const StepScalars*> CopyScalars(Device& device, Stream& stream, const KernelCase& kernel_case) {
  const auto copy = [&](const void* from, int64_t bytes) -> absl::StatusOr<std::byte*> {
    ASSIGN_OR_RETURN(std::byte* const memory, device.Allocate(bytes));
    RETURN_IF_ERROR(device.CopyToDevice(stream, memory, from, bytes));
    return memory;
  };
  StepScalars scalars = kernel_case.scalars;
  ASSIGN_OR_RETURN(const std::byte* const parameters,
                   copy(kernel_case.parameters.data(),
                        static_cast<int64_t>(kernel_case.parameters.size() * sizeof(ParameterScalars))));
  scalars.parameters = reinterpret_cast<const ParameterScalars*>(parameters);
  ASSIGN_OR_RETURN(const std::byte* const placed, copy(&scalars, sizeof scalars));
  return reinterpret_cast<const StepScalars*>(placed);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> RunCase(Device& device, const KernelCase& kernel_case, int64_t behind) {
  KernelSpec spec = kernel_case.spec;
  for (int k : kernel_case.constants) {
    spec.inputs[k].constant = reinterpret_cast<const std::byte*>(kernel_case.inputs[k].data());
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream, device.NewStream());
  ASSIGN_OR_RETURN(const std::unique_ptr<Kernel> kernel, device.Prepare(spec));
  std::vector<const void*> inputs(spec.inputs.size());
  std::vector<void*> outputs(spec.outputs.size());
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (!spec.inputs[k].present) continue;
    const std::string& contents = kernel_case.inputs[k];
    ASSIGN_OR_RETURN(std::byte* memory, device.Allocate(contents.size() + behind));
    memory += behind;
    RETURN_IF_ERROR(device.CopyToDevice(*stream, memory, contents.data(), contents.size()));
    inputs[k] = memory;
  }
  for (size_t k = 0; k < outputs.size(); ++k) {
    if (!spec.outputs[k].present) continue;
    const int in_place = k < kernel_case.in_place.size() ? kernel_case.in_place[k] : -1;
    if (in_place >= 0) {
      outputs[k] = const_cast<void*>(inputs[in_place]);
      continue;
    }
    ASSIGN_OR_RETURN(std::byte* const memory, device.Allocate(spec.outputs[k].type.bytes() + behind));
    outputs[k] = memory + behind;
  }
  ASSIGN_OR_RETURN(std::byte* const workspace, device.Allocate(kernel->workspace_bytes()));
  ASSIGN_OR_RETURN(const StepScalars* const scalars, CopyScalars(device, *stream, kernel_case));
  RETURN_IF_ERROR(kernel->Launch(*stream, {inputs.data(), outputs.data(), scalars, workspace,
                                             kernel_case.scalars.microbatch == 0}));
  std::vector<std::string> results(outputs.size());
  for (size_t k = 0; k < outputs.size(); ++k) {
    if (!spec.outputs[k].present) continue;
    results[k].resize(spec.outputs[k].type.bytes());
    RETURN_IF_ERROR(device.CopyToHost(*stream, results[k].data(), outputs[k], results[k].size()));
  }
  RETURN_IF_ERROR(stream->Synchronize(absl::Now() + absl::Minutes(1)));
  return results;
}

std::string Difference(const TensorType& type, const std::string& wanted, const std::string& got,
                       double tolerance) {
  if (!IsFloat(type.dtype)) tolerance = 0;
  double worst = 0;
  std::string words;
  for (int64_t i = 0; i < type.elements(); ++i) {
    const double a = At(type.dtype, wanted, i), b = At(type.dtype, got, i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    double difference = std::fabs(a - b) / (1 + std::fabs(a));
    if (std::isnan(difference)) difference = INFINITY;
    if (difference <= tolerance || difference <= worst) continue;
    worst = difference;
    words = absl::StrCat("element ", i, " of ", ToString(type), " is ", b, ", wanted ", a);
  }
  return words;
}

namespace {

// Element i of a float type.
void PutFloat(DType dtype, double x, int64_t i, std::string& bytes) {
  const auto put = [&](auto value) { std::memcpy(bytes.data() + i * sizeof value, &value, sizeof value); };
  if (dtype == DType::kFloat32) put(static_cast<float>(x));
  if (dtype == DType::kFloat64) put(x);
  if (dtype == DType::kFloat16) put(ToFloat16(x));
  if (dtype == DType::kBFloat16) put(ToBFloat16(x));
}

}  // namespace

std::string Converted(const std::string& numbers, const TensorType& type) {
  std::string bytes(type.bytes(), '\0');
  for (int64_t i = 0; i < type.elements(); ++i)
    PutFloat(type.dtype, At(DType::kFloat64, numbers, i), i, bytes);
  return bytes;
}

std::string RandomContents(const TensorType& type, std::mt19937_64& random, bool positive) {
  std::uniform_real_distribution<double> draw(positive ? 0.1 : -2, 2);
  std::uniform_int_distribution<int64_t> draw_integer(positive ? 1 : -20, 20), draw_bool(0, 1);
  std::string bytes(type.bytes(), '\0');
  for (int64_t i = 0; i < type.elements(); ++i) {
    if (IsFloat(type.dtype)) {
      PutFloat(type.dtype, draw(random), i, bytes);
    } else {
      // The low bytes of any integer.
      const int64_t integer = type.dtype == DType::kBool ? draw_bool(random) : draw_integer(random);
      std::memcpy(bytes.data() + i * SizeOf(type.dtype), &integer, SizeOf(type.dtype));
    }
  }
  return bytes;
}

}  // namespace pipec
