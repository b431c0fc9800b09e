// Runs of whole plans whose ranks have a GPU each and talk by NCCL.
#pragma once

#include "absl/time/time.h"
#include "tests/cuda/plan_run.h"

namespace pipec {

// All ranks in one process, or each in one of its own as far as it can tell: then also all messages of a rank on
// one stream. `limit`: of a call of NCCL.
MeetingOf ByNccl(bool one_process, bool one_stream = false, absl::Duration limit = absl::Seconds(60));

// A rank whose graph has no other rank's work.
DevicesOf Alone(bool graphs);

}  // namespace pipec
