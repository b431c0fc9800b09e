// The schedules that --schedule=auto chose from.
#pragma once

#include <string>

#include "compiler/report/report.h"

namespace pipec {

// A table, the chosen one first, and how near it comes to the bound; "" if there are no candidates.
std::string CandidatesText(const Report& report);

}  // namespace pipec
