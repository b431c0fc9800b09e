// What pipec --list-ops, --list-schedules, --list-passes and --list-devices print.
#pragma once

#include <string>

namespace pipec {

// One line an op: its opsets, whether CPU and CUDA have a kernel, its gradient. JSON: an array of {"op",
// "domain", "opsets", "cpu", "cuda", "gradient": "rule"|"function"|"none"}.
std::string ListOps(bool json);
// The name first on its line.
std::string ListSchedules();
// In their order, with the reason for each position.
std::string ListPasses();
// What can be planned for, with the rates and their source, and what piperun of this build runs on.
std::string ListDevices();

}  // namespace pipec
