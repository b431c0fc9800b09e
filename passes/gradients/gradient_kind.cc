// How an op is differentiated: by a rule of its own, or by those of the ops that stand in its place.
#include <string>

#include "compiler/onnx/schema/replaced_ops.h"
#include "passes/gradients/gradient.h"

namespace pipec {

GradientKind GradientKindOf(absl::string_view op, absl::string_view domain) {
  if (FindGradientRule(op, domain)) return GradientKind::kRule;
  if (NoGradientFlows(op, domain) || !domain.empty()) return GradientKind::kNone;
  // A pass puts pipec's own form of the op in its place (lower-dropout).
  if (FindGradientRule(op, kPipecDomain)) return GradientKind::kFunction;
  const Flow flow =
      FlowThroughReplacement(std::string(op), [](absl::string_view part, absl::string_view part_domain) {
        if (FindGradientRule(part, part_domain)) return Flow::kPasses;
        return NoGradientFlows(part, part_domain) ? Flow::kStops : Flow::kUnknown;
      });
  return flow == Flow::kPasses ? GradientKind::kFunction : GradientKind::kNone;
}

}  // namespace pipec
