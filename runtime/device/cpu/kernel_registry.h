// The CPU's kernels (runtime/device/kernel_table.h).
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/device/device.h"
#include "runtime/device/kernel_table.h"

namespace pipec::cpu {

using PrepareFunction = absl::StatusOr<std::unique_ptr<Kernel>> (*)(const KernelSpec& spec);
using KernelRegistry = KernelTable<PrepareFunction>;

// All CPU kernels, built once.
const KernelRegistry& Kernels();

}  // namespace pipec::cpu
