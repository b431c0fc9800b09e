// The op families: one file each, put together in op_info.cc.
#pragma once

#include "compiler/ops/op_info.h"

namespace pipec {

absl::Span<const OpInfo> ElementwiseOps();
absl::Span<const OpInfo> MatMulOps();
absl::Span<const OpInfo> FusedAttentionOps();
absl::Span<const OpInfo> NormalizationOps();
absl::Span<const OpInfo> WindowOps();
absl::Span<const OpInfo> RecurrentOps();
absl::Span<const OpInfo> ReductionOps();
absl::Span<const OpInfo> ShapeOps();
absl::Span<const OpInfo> SelectionOps();
absl::Span<const OpInfo> SizedByDataOps();
absl::Span<const OpInfo> DropoutOps();
absl::Span<const OpInfo> LossOps();
absl::Span<const OpInfo> UpdateOps();
absl::Span<const OpInfo> GradientOps();

}  // namespace pipec
