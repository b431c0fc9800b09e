// BitCast: the same bits as elements of another type of the same size. Elements of 4 and 2 bits lie in bytes,
// which are made those of the new type.
#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/base/tiny_types.h"
#include "runtime/device/cpu/kernels/element_kernel.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/register.h"

namespace pipec::cpu {
namespace {

absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 1, .max_inputs = 1}));
  const TensorType& x = spec.inputs[0].type;
  const auto to = static_cast<DType>(spec.attributes.Int("to", 0));
  if (SizeOf(x.dtype) == 0 || SizeOf(to) == 0) return NoKernelFor(spec, SizeOf(to) == 0 ? to : x.dtype);
  if (BitsInFile(x.dtype) != BitsInFile(to)) {
    return Invalid(spec, absl::StrCat(Name(x.dtype), " and ", Name(to), " do not have as many bits"));
  }
  RETURN_IF_ERROR(CheckOutput(spec, 0, {to, x.shape}));
  const int bits = BitsInFile(to);
  const int64_t bytes = x.bytes();
  return MakeKernel(0, [=](const KernelArguments& arguments) {
    const uint8_t* const from = Input<uint8_t>(arguments, 0);
    uint8_t* const result = Output<uint8_t>(arguments, 0);
    ParallelFor(bytes, 4 * kElementGrain, [&](int64_t begin, int64_t end) {
      if (bits >= 8) {
        std::memcpy(result + begin, from + begin, end - begin);
        return;
      }
      for (int64_t i = begin; i < end; ++i) {
        const uint8_t code = from[i] & ((1 << bits) - 1);
        result[i] = IsTinyInteger(to) ? WrapTiny(to, code) : code;
      }
    });
    return absl::OkStatus();
  });
}

}  // namespace

void RegisterBitCastKernels(KernelRegistry& registry) { registry.Add("BitCast", "", Prepare); }

}  // namespace pipec::cpu
