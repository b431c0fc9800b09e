// Whether what a schedule keeps in flight fits.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "compiler/schedule/schedule.h"

namespace pipec {

// Bytes that a stage keeps of one microbatch. B is I and W at once.
struct KeptBytes {
  int64_t until_input = 0;   // from F until I: activations that weight gradients do not need
  int64_t until_weight = 0;  // from F until W: those that they do
  int64_t between = 0;       // from I until W: gradients that they need
};

struct ScheduleMemory {
  std::vector<KeptBytes> stages;  // S
  std::vector<int64_t> always;    // P: parameters, optimizer state, messages, what one action uses
  std::vector<int64_t> limits;    // P
};

// By rank, the most bytes that its stages keep at once.
std::vector<int64_t> MostKept(const Schedule& schedule, absl::Span<const KeptBytes> stages);

// ResourceExhausted if a rank needs more than its limit: of the one that needs most beyond it the first action at
// which it does, with the lists around it. The schedule must have passed CheckSchedule.
absl::Status CheckMemory(const Schedule& schedule, const ScheduleMemory& memory);

}  // namespace pipec
