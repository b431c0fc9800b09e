#include "runtime/device/cpu/kernels/register.h"

namespace pipec::cpu {

const KernelRegistry& Kernels() {
  static const KernelRegistry* const kernels = [] {
    auto* registry = new KernelRegistry;
    RegisterMatMulKernels(*registry);
    RegisterGeluKernels(*registry);
    RegisterActivationGradKernels(*registry);
    RegisterSoftmaxKernels(*registry);
    RegisterLayerNormalizationKernels(*registry);
    RegisterDropoutKernels(*registry);
    RegisterCrossEntropyKernels(*registry);
    RegisterNegativeLogLikelihoodKernels(*registry);
    RegisterElementLossKernels(*registry);
    RegisterCountCorrectKernels(*registry);
    RegisterAccumulateKernels(*registry);
    RegisterGradientScaleKernels(*registry);
    RegisterOptimizerKernels(*registry);
    return registry;
  }();
  return *kernels;
}

}  // namespace pipec::cpu
