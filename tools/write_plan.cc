#include "tools/write_plan.h"

#include <vector>

#include "compiler/emit/emit.h"
#include "compiler/onnx/export.h"
#include "runtime/base/status.h"
#include "tools/support/flags.h"

namespace pipec {

absl::Status WritePlan(const Module& module, const std::string& model_path, const std::string& directory,
                       ParameterMode parameters, const std::string& report,
                       const Cluster& cluster) {
  ASSIGN_OR_RETURN(const ParameterPlacement placement, PlaceParameters(module, parameters));
  // The model as the plan holds it, and as an export of trained parameters will.
  std::vector<ExternalTensor> places[2];
  auto& [in_plan, in_export] = places;
  for (const PlacedParameter& placed : placement.parameters) {
    if (placed.added) continue;
    const std::string& name = placed.value->name();
    const uint64_t length = placed.type.bytes();
    in_plan.push_back({name, placed.file, static_cast<uint64_t>(placed.offset), length});
    in_export.push_back({name, "model.safetensors", static_cast<uint64_t>(placed.checkpoint_offset), length});
  }
  EmitOptions options;
  options.directory = directory;
  options.pipec_version = kVersion;
  options.cluster = &cluster;
  ASSIGN_OR_RETURN(std::vector<std::string> models, WithExternalData(model_path, places));
  options.files = {
      {"model.onnx", std::move(models[0])}, {"export.onnx", std::move(models[1])}, {"report.html", report}};
  return EmitPlan(module, placement, options);
}

}  // namespace pipec
