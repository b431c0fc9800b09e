// The bodies, one family of helper ops a file, one row an op; put together in bodies.cc.
#pragma once

#include "absl/types/span.h"
#include "compiler/onnx/bodies/body.h"

namespace pipec {

struct BodyRow {
  absl::string_view op;
  absl::string_view operands;  // as in Body's constructor
  absl::string_view scalars;   // run-time scalars (run_time_scalars.h) that are operands of the function too
  void (*write)(Body& body);
};

absl::Span<const BodyRow> ActivationBodies();
absl::Span<const BodyRow> AttentionBodies();
absl::Span<const BodyRow> NormalizationBodies();
absl::Span<const BodyRow> WindowBodies();
absl::Span<const BodyRow> RecurrentBodies();
absl::Span<const BodyRow> SelectionBodies();
absl::Span<const BodyRow> SizedByDataBodies();
absl::Span<const BodyRow> DropoutBodies();
absl::Span<const BodyRow> LossBodies();
absl::Span<const BodyRow> UpdateBodies();

}  // namespace pipec
