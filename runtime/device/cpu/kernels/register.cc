#include "runtime/device/cpu/kernels/register.h"

namespace pipec::cpu {

const KernelRegistry& Kernels() {
  static const KernelRegistry* const kernels = [] {
    auto* registry = new KernelRegistry;
    return registry;
  }();
  return *kernels;
}

}  // namespace pipec::cpu
