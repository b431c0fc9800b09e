#include "runtime/device/cpu/kernels/register.h"

namespace pipec::cpu {

const KernelRegistry& Kernels() {
  static const KernelRegistry* const kernels = [] {
    auto* registry = new KernelRegistry;
    RegisterMatMulKernels(*registry);
    RegisterMatMulWeightGradKernels(*registry);
    RegisterAttentionKernels(*registry);
    RegisterAttentionGradKernels(*registry);
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
    RegisterUnaryKernels(*registry);
    RegisterArithmeticKernels(*registry);
    RegisterPowKernels(*registry);
    RegisterVariadicKernels(*registry);
    RegisterCompareKernels(*registry);
    RegisterWhereKernels(*registry);
    RegisterCastKernels(*registry);
    RegisterBitCastKernels(*registry);
    RegisterReduceKernels(*registry);
    RegisterArgMaxKernels(*registry);
    RegisterCumulativeKernels(*registry);
    RegisterGatherKernels(*registry);
    RegisterTransposeKernels(*registry);
    RegisterReshapeKernels(*registry);
    RegisterConcatKernels(*registry);
    RegisterSliceKernels(*registry);
    RegisterExpandKernels(*registry);
    RegisterPadKernels(*registry);
    RegisterTriluKernels(*registry);
    RegisterOneHotKernels(*registry);
    RegisterGenerateKernels(*registry);
    RegisterConvolutionKernels(*registry);
    RegisterPoolKernels(*registry);
    RegisterConvolutionGradKernels(*registry);
    RegisterPoolGradKernels(*registry);
    RegisterBatchNormalizationKernels(*registry);
    RegisterBatchNormalizationGradKernels(*registry);
    RegisterNormalizationKernels(*registry);
    RegisterGatherElementsKernels(*registry);
    RegisterGatherNdKernels(*registry);
    RegisterTensorScatterKernels(*registry);
    RegisterRecurrentKernels(*registry);
    RegisterRecurrentGradKernels(*registry);
    RegisterBitwiseKernels(*registry);
    RegisterTopKKernels(*registry);
    RegisterReverseSequenceKernels(*registry);
    RegisterEyeLikeKernels(*registry);
    RegisterNonZeroKernels(*registry);
    RegisterCompressKernels(*registry);
    RegisterTfIdfVectorizerKernels(*registry);
    RegisterUniqueKernels(*registry);
    RegisterNonMaxSuppressionKernels(*registry);
    RegisterResizeKernels(*registry);
    RegisterQuantizeKernels(*registry);
    RegisterQuantizedProductKernels(*registry);
    RegisterQuantizedConvolutionKernels(*registry);
    RegisterEinsumKernels(*registry);
    RegisterGridSampleKernels(*registry);
    RegisterMaxUnpoolKernels(*registry);
    RegisterRandomKernels(*registry);
    RegisterDepthToSpaceKernels(*registry);
    RegisterMelWeightMatrixKernels(*registry);
    RegisterDeformConvolutionKernels(*registry);
    RegisterStftKernels(*registry);
    RegisterDftKernels(*registry);
    RegisterCol2ImKernels(*registry);
    RegisterDetKernels(*registry);
    RegisterRoiKernels(*registry);
    return registry;
  }();
  return *kernels;
}

}  // namespace pipec::cpu
