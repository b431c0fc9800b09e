// What the emulation's control says on a GPU: nothing. So the tests that compare kernels and whole plans with the
// CPU run there as they are; those that inject errors, count objects or ask for more GPUs than there are do not
// (run.sh).
#include "tests/cuda_emulation/control.h"

namespace cuda_emulation {

void SetSeed(uint64_t) {}
void FailCall(int64_t, cudaError_t) {}
int64_t CallCount() { return 0; }
std::map<std::string, int64_t> CallCounts() { return {}; }
std::vector<std::string> TakeReports() { return {}; }
void SetDevices(int, size_t, bool) {}
int64_t CopiesByHost() { return 0; }
void EpiloguesWantAlignment(bool) {}
void SetPatience(std::chrono::milliseconds) {}
LiveObjects CountLiveObjects() { return {}; }

}  // namespace cuda_emulation
