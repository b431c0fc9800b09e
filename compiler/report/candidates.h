// What the plan was chosen from (auto), as a table in text.
#pragma once

#include <string>

#include "compiler/report/report.h"

namespace pipec {

// The second best; null if there is none that can be had.
const CandidateRow* RunnerUp(const Report& report);

// "" if nothing was left to choose.
std::string CandidatesText(const Report& report);

}  // namespace pipec
