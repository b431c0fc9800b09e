// --compare: the same model under other schedules.
#pragma once

#include <string>
#include <vector>

#include "compiler/report/report.h"
#include "tools/compile_flags.h"

namespace pipec {

// Compiles the model of `flags`, not yet imported, once for each schedule, in the mode and with the ranks and
// microbatches of `module`, which was made of the same flags. What cannot be compiled so comes back with the
// reason.
std::vector<ComparedStep> CompareSchedules(const CompileFlags& flags,
                                           const std::vector<std::string>& schedules, const Module& module);

}  // namespace pipec
