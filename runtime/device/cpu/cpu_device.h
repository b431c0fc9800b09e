// The CPU device: streams run at once, kernels are oneDNN primitives and vectorised loops.
#pragma once

#include <memory>

#include "runtime/device/device.h"

namespace pipec {

// A device whose kernels use `threads` threads (at least 1), the calling one included. One rank's thread
// makes all calls of the device and of its streams and kernels: the threads belong to it (libgomp keeps one
// group per calling thread, which oneDNN and our loops share), and every call below sets their number for it.
// Needs AVX2 and FMA on x86-64: NewStream is Unimplemented without.
std::unique_ptr<Device> MakeCpuDevice(int threads);

}  // namespace pipec
