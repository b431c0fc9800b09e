#include "runtime/device/cuda/kernels/register.h"

namespace pipec::cuda {

const KernelRegistry& Kernels() {
  static const KernelRegistry* const kernels = [] {
    auto* registry = new KernelRegistry;
    RegisterUnaryKernels(*registry);
    RegisterArithmeticKernels(*registry);
    RegisterCompareKernels(*registry);
    RegisterCastKernels(*registry);
    RegisterMoveKernels(*registry);
    RegisterPlaceKernels(*registry);
    RegisterGatherKernels(*registry);
    RegisterScatterKernels(*registry);
    RegisterAlongAxisKernels(*registry);
    RegisterRowNormalizationKernels(*registry);
    RegisterBlockKernels(*registry);
    RegisterResizeKernels(*registry);
    RegisterSamplingKernels(*registry);
    RegisterFourierKernels(*registry);
    RegisterEinsumKernels(*registry);
    RegisterDequantizeKernels(*registry);
    RegisterDropoutKernels(*registry);
    RegisterElementLossKernels(*registry);
    RegisterNegativeLogLikelihoodKernels(*registry);
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
    RegisterMatMulWeightGradKernels(*registry);
    RegisterCrossEntropyKernels(*registry);
    RegisterCountCorrectKernels(*registry);
    RegisterAttentionKernels(*registry);
    RegisterAttentionGradKernels(*registry);
    RegisterSoftmaxKernels(*registry);
    RegisterLayerNormalizationKernels(*registry);
    RegisterOptimizerKernels(*registry);
    return registry;
  }();
  return *kernels;
}

}  // namespace pipec::cuda
