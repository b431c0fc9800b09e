#include "tools/write_plan.h"

#include <vector>

#include "compiler/emit/emit.h"
#include "compiler/onnx/export.h"
#include "runtime/base/status.h"
#include "tools/support/flags.h"

namespace pipec {

absl::Status WritePlan(const Module& module, const std::string& model_path, const std::string& directory,
                       ParameterMode parameters, const std::string& report) {
  ASSIGN_OR_RETURN(const ParameterPlacement placement, PlaceParameters(module, parameters));
  // The model as the plan holds it, and as an export of trained parameters will.
  std::vector<ExternalTensor> in_plan, in_export;
  for (const PlacedParameter& placed : placement.parameters) {
    const std::string& name = placed.value->name();
    const uint64_t length = placed.value->type.bytes();
    in_plan.push_back({name, placed.file, static_cast<uint64_t>(placed.offset), length});
    in_export.push_back({name, "model.safetensors", static_cast<uint64_t>(placed.checkpoint_offset), length});
  }
  EmitOptions options;
  options.directory = directory;
  options.pipec_version = kVersion;
  ASSIGN_OR_RETURN(std::string model, WithExternalData(model_path, in_plan));
  ASSIGN_OR_RETURN(std::string exported, WithExternalData(model_path, in_export));
  options.files = {
      {"model.onnx", std::move(model)}, {"export.onnx", std::move(exported)}, {"report.html", report}};
  return EmitPlan(module, placement, options);
}

}  // namespace pipec
