// The register functions of the kernel files in this folder, one a file.
#pragma once

#include "runtime/device/cpu/kernel_registry.h"

namespace pipec::cpu {

// Matrix products.
void RegisterMatMulKernels(KernelRegistry& registry);
void RegisterMatMulWeightGradKernels(KernelRegistry& registry);
void RegisterEinsumKernels(KernelRegistry& registry);

// Activations and normalisations with their gradients.
void RegisterGeluKernels(KernelRegistry& registry);
void RegisterActivationGradKernels(KernelRegistry& registry);
void RegisterAttentionKernels(KernelRegistry& registry);
void RegisterAttentionGradKernels(KernelRegistry& registry);
void RegisterSoftmaxKernels(KernelRegistry& registry);
void RegisterLayerNormalizationKernels(KernelRegistry& registry);
void RegisterDropoutKernels(KernelRegistry& registry);

// Losses.
void RegisterCrossEntropyKernels(KernelRegistry& registry);
void RegisterNegativeLogLikelihoodKernels(KernelRegistry& registry);
void RegisterElementLossKernels(KernelRegistry& registry);
void RegisterCountCorrectKernels(KernelRegistry& registry);

// Accumulation and update.
void RegisterAccumulateKernels(KernelRegistry& registry);
void RegisterGradientScaleKernels(KernelRegistry& registry);
void RegisterOptimizerKernels(KernelRegistry& registry);

// Element-wise ops.
void RegisterUnaryKernels(KernelRegistry& registry);
void RegisterArithmeticKernels(KernelRegistry& registry);
void RegisterPowKernels(KernelRegistry& registry);
void RegisterVariadicKernels(KernelRegistry& registry);
void RegisterCompareKernels(KernelRegistry& registry);
void RegisterWhereKernels(KernelRegistry& registry);
void RegisterCastKernels(KernelRegistry& registry);
void RegisterBitCastKernels(KernelRegistry& registry);
void RegisterBitwiseKernels(KernelRegistry& registry);

// Reductions and running sums.
void RegisterReduceKernels(KernelRegistry& registry);
void RegisterArgMaxKernels(KernelRegistry& registry);
void RegisterCumulativeKernels(KernelRegistry& registry);
void RegisterTopKKernels(KernelRegistry& registry);
void RegisterTfIdfVectorizerKernels(KernelRegistry& registry);

// Movement of data.
void RegisterGatherKernels(KernelRegistry& registry);
void RegisterTransposeKernels(KernelRegistry& registry);
void RegisterReshapeKernels(KernelRegistry& registry);
void RegisterConcatKernels(KernelRegistry& registry);
void RegisterSliceKernels(KernelRegistry& registry);
void RegisterExpandKernels(KernelRegistry& registry);
void RegisterPadKernels(KernelRegistry& registry);
void RegisterTriluKernels(KernelRegistry& registry);
void RegisterOneHotKernels(KernelRegistry& registry);
void RegisterGenerateKernels(KernelRegistry& registry);
void RegisterGatherElementsKernels(KernelRegistry& registry);
void RegisterGatherNdKernels(KernelRegistry& registry);
void RegisterTensorScatterKernels(KernelRegistry& registry);
void RegisterReverseSequenceKernels(KernelRegistry& registry);
void RegisterRandomKernels(KernelRegistry& registry);
void RegisterDepthToSpaceKernels(KernelRegistry& registry);
void RegisterEyeLikeKernels(KernelRegistry& registry);

// Results whose size depends on data.
void RegisterNonZeroKernels(KernelRegistry& registry);
void RegisterCompressKernels(KernelRegistry& registry);
void RegisterUniqueKernels(KernelRegistry& registry);
void RegisterNonMaxSuppressionKernels(KernelRegistry& registry);

// Convolutions, pooling and what goes with them.
void RegisterConvolutionKernels(KernelRegistry& registry);
void RegisterPoolKernels(KernelRegistry& registry);
void RegisterConvolutionGradKernels(KernelRegistry& registry);
void RegisterPoolGradKernels(KernelRegistry& registry);
void RegisterBatchNormalizationKernels(KernelRegistry& registry);
void RegisterBatchNormalizationGradKernels(KernelRegistry& registry);
void RegisterNormalizationKernels(KernelRegistry& registry);
void RegisterResizeKernels(KernelRegistry& registry);
void RegisterGridSampleKernels(KernelRegistry& registry);
void RegisterMaxUnpoolKernels(KernelRegistry& registry);
void RegisterDeformConvolutionKernels(KernelRegistry& registry);
void RegisterCol2ImKernels(KernelRegistry& registry);
void RegisterDetKernels(KernelRegistry& registry);
void RegisterRoiKernels(KernelRegistry& registry);

// Fourier transforms.
void RegisterDftKernels(KernelRegistry& registry);
void RegisterStftKernels(KernelRegistry& registry);
void RegisterMelWeightMatrixKernels(KernelRegistry& registry);

// Recurrent layers.
void RegisterRecurrentKernels(KernelRegistry& registry);
void RegisterRecurrentGradKernels(KernelRegistry& registry);

// Quantised tensors.
void RegisterQuantizeKernels(KernelRegistry& registry);
void RegisterQuantizedProductKernels(KernelRegistry& registry);
void RegisterQuantizedConvolutionKernels(KernelRegistry& registry);

}  // namespace pipec::cpu
