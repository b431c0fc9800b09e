// The register functions of the files in this folder, one a file.
#pragma once

#include "runtime/device/cuda/kernel_registry.h"

namespace pipec::cuda {

void RegisterUnaryKernels(KernelRegistry& registry);
void RegisterArithmeticKernels(KernelRegistry& registry);
void RegisterCompareKernels(KernelRegistry& registry);
void RegisterCastKernels(KernelRegistry& registry);
void RegisterMoveKernels(KernelRegistry& registry);
void RegisterPlaceKernels(KernelRegistry& registry);
void RegisterGatherKernels(KernelRegistry& registry);
void RegisterScatterKernels(KernelRegistry& registry);
void RegisterAlongAxisKernels(KernelRegistry& registry);
void RegisterRowNormalizationKernels(KernelRegistry& registry);
void RegisterBlockKernels(KernelRegistry& registry);
void RegisterResizeKernels(KernelRegistry& registry);
void RegisterSamplingKernels(KernelRegistry& registry);
void RegisterFourierKernels(KernelRegistry& registry);
void RegisterEinsumKernels(KernelRegistry& registry);
void RegisterDequantizeKernels(KernelRegistry& registry);
void RegisterDropoutKernels(KernelRegistry& registry);
void RegisterElementLossKernels(KernelRegistry& registry);
void RegisterNegativeLogLikelihoodKernels(KernelRegistry& registry);
void RegisterAccumulateKernels(KernelRegistry& registry);
void RegisterGradientScaleKernels(KernelRegistry& registry);
void RegisterRecurrentKernels(KernelRegistry& registry);
void RegisterRecurrentGradKernels(KernelRegistry& registry);
void RegisterReduceKernels(KernelRegistry& registry);
void RegisterBatchNormalizationKernels(KernelRegistry& registry);
void RegisterBatchNormalizationGradKernels(KernelRegistry& registry);
void RegisterConvolutionKernels(KernelRegistry& registry);
void RegisterPoolKernels(KernelRegistry& registry);
void RegisterPoolGradKernels(KernelRegistry& registry);
void RegisterMatMulKernels(KernelRegistry& registry);
void RegisterMatMulWeightGradKernels(KernelRegistry& registry);
void RegisterCrossEntropyKernels(KernelRegistry& registry);
void RegisterCountCorrectKernels(KernelRegistry& registry);
void RegisterAttentionKernels(KernelRegistry& registry);
void RegisterAttentionGradKernels(KernelRegistry& registry);
void RegisterSoftmaxKernels(KernelRegistry& registry);
void RegisterLayerNormalizationKernels(KernelRegistry& registry);
void RegisterOptimizerKernels(KernelRegistry& registry);

}  // namespace pipec::cuda
