#include "runtime/device/cuda/kernels/register.h"

namespace pipec::cuda {

const KernelRegistry& Kernels() {
  static const KernelRegistry* const kernels = [] {
    auto* registry = new KernelRegistry;
    RegisterUnaryKernels(*registry);
    RegisterArithmeticKernels(*registry);
    RegisterAccumulateKernels(*registry);
    RegisterGradientScaleKernels(*registry);
    RegisterRecurrentKernels(*registry);
    RegisterRecurrentGradKernels(*registry);
    RegisterReduceKernels(*registry);
    RegisterBatchNormalizationKernels(*registry);
    RegisterBatchNormalizationGradKernels(*registry);
    RegisterConvolutionKernels(*registry);
    RegisterPoolKernels(*registry);
    RegisterPoolGradKernels(*registry);
    RegisterMatMulKernels(*registry);
    RegisterCrossEntropyKernels(*registry);
    RegisterCountCorrectKernels(*registry);
    RegisterSoftmaxKernels(*registry);
    RegisterLayerNormalizationKernels(*registry);
    RegisterOptimizerKernels(*registry);
    return registry;
  }();
  return *kernels;
}

}  // namespace pipec::cuda
