// ReverseSequence (X, sequence_lens) -> (Y): the first sequence_lens[b] steps
// of each sample in reverse, the rest as it is.
#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/kernels/make_kernel.h"
#include "runtime/device/cpu/kernels/register.h"
#include "runtime/device/cpu/parallel_for.h"
#include "runtime/device/operands/reverse_sequence.h"

namespace pipec::cpu {
namespace {

absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec &spec) {
  ASSIGN_OR_RETURN(const ReversedSequences sequences, ReadReverseSequence(spec));
  return MakeKernel(0, [=](const KernelArguments &arguments) -> absl::Status {
    const auto [batch, steps, bytes, time_first] = sequences;
    const int64_t *const lengths = Input<int64_t>(arguments, 1);
    for (int64_t i = 0; i < batch; ++i) {
      if (lengths[i] < 0 || lengths[i] > steps) {
        return absl::InvalidArgumentError(
            absl::StrCat("sequence length ", lengths[i], " of sample ", i, " is outside [0,", steps, "]"));
      }
    }
    const int64_t inner = time_first ? batch : steps;  // entries of axis 1
    ParallelFor(batch * steps, std::max<int64_t>(1, 65536 / std::max<int64_t>(bytes, 1)),
                [=, steps = steps, bytes = bytes, time_first = time_first](int64_t begin, int64_t end) {
                  for (int64_t row = begin; row < end; ++row) {
                    const int64_t sample = time_first ? row % inner : row / inner;
                    const int64_t t = time_first ? row / inner : row % inner;
                    const int64_t source = t < lengths[sample] ? lengths[sample] - 1 - t : t;
                    const int64_t from = time_first ? source * inner + sample : sample * inner + source;
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
