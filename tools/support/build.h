// What this build of the tools has.
#pragma once

#include <string>

namespace pipec {

// One sentence: the devices and transports that it lacks, and why.
std::string MissingInBuild();

}  // namespace pipec
