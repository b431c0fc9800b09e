// ReverseSequence (X, sequence_lens) -> (Y): the first sequence_lens[b] steps
// of each sample in reverse, the rest as it is.
#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/parallel_for.h"

namespace pipec::cpu {
namespace {

absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec &spec) {
  RETURN_IF_ERROR(CheckOperands(spec, {.min_inputs = 2, .max_inputs = 2}));
  const TensorType &x = spec.inputs[0].type;
  if (SizeOf(x.dtype) == 0) return NoKernelFor(spec, x.dtype);
  const int64_t batch_axis = spec.attributes.Int("batch_axis", 1),
                time_axis = spec.attributes.Int("time_axis", 0);
  if (x.shape.size() < 2 || batch_axis + time_axis != 1 || batch_axis < 0 || batch_axis > 1) {
    return Invalid(spec, absl::StrCat("batch_axis ", batch_axis, ", time_axis ", time_axis, " and X ",
                                      ToString(x), ", wanted axes 0 and 1 of rank 2 or more"));
  }
  const int64_t batch = x.shape[batch_axis], steps = x.shape[time_axis];
  RETURN_IF_ERROR(CheckInput(spec, 1, {DType::kInt64, {batch}}));
  RETURN_IF_ERROR(CheckOutput(spec, 0, x));
  const int64_t bytes = NumElements(absl::MakeSpan(x.shape).subspan(2)) * SizeOf(x.dtype);
  return MakeKernel(0, [=](const KernelArguments &arguments) -> absl::Status {
    const int64_t *const lengths = Input<int64_t>(arguments, 1);
    for (int64_t i = 0; i < batch; ++i) {
      if (lengths[i] < 0 || lengths[i] > steps) {
        return absl::InvalidArgumentError(
            absl::StrCat("sequence length ", lengths[i], " of sample ", i, " is outside [0,", steps, "]"));
      }
    }
    const int64_t inner = batch_axis == 1 ? batch : steps;  // entries of axis 1
    ParallelFor(batch * steps, std::max<int64_t>(1, 65536 / std::max<int64_t>(bytes, 1)),
                [=](int64_t begin, int64_t end) {
                  for (int64_t row = begin; row < end; ++row) {
                    const int64_t sample = batch_axis == 1 ? row % inner : row / inner;
                    const int64_t t = batch_axis == 1 ? row / inner : row % inner;
                    const int64_t source = t < lengths[sample] ? lengths[sample] - 1 - t : t;
                    const int64_t from = batch_axis == 1 ? source * inner + sample : sample * inner + source;
                    std::memcpy(Output<std::byte>(arguments, 0) + row * bytes,
                                Input<std::byte>(arguments, 0) + from * bytes, bytes);
                  }
                });
    return absl::OkStatus();
  });
}

}  // namespace

void RegisterReverseSequenceKernels(KernelRegistry &registry) {
  registry.Add("ReverseSequence", "", Prepare);
}

}  // namespace pipec::cpu
