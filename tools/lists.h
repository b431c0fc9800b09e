// What pipec --list-ops, --list-schedules, --list-passes and --list-devices print: a table, or JSON.
#pragma once

#include <string>

namespace pipec {

// One line an op: its opsets, whether CPU and CUDA have a kernel, its gradient. JSON: an array of {"op",
// "domain", "opsets", "cpu", "cuda", "gradient": "rule"|"function"|"none"}.
std::string ListOps(bool json);
// One line a schedule. JSON: an array of objects whose keys are the fields of ScheduleInfo.
std::string ListSchedules(bool json);
// In their order, with the reason for each position. JSON: an array of {"name", "before", "after", "why_here"}.
std::string ListPasses(bool json);
// What can be planned for, with the rates and their source, and what piperun of this build runs on. JSON: {"pipec":
// [{"name", "flops_per_second", "bytes_per_second", "memory_bytes" (0: the machine's), "source"}], "piperun": [{"name",
// "what"}]}.
std::string ListDevices(bool json);

}  // namespace pipec
