// What ReverseSequence asks of an instruction.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "runtime/device/device.h"

namespace pipec {

// X is (steps, batch, ...) or (batch, steps, ...).
struct ReversedSequences {
  int64_t batch, steps, bytes;  // bytes: of one step of a sample
  bool time_first;
};

absl::StatusOr<ReversedSequences> ReadReverseSequence(const KernelSpec& spec);

}  // namespace pipec
