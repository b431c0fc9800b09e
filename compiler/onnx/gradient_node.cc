#include "compiler/onnx/gradient_node.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/counted.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

absl::StatusOr<Value*> Named(const std::string& name, const Scope& scope) {
  const Meaning* meaning = scope.Find(name);
  if (meaning) return TensorOf(*meaning);
  return absl::InvalidArgumentError(absl::StrCat("no value before it is called '", name, "'"));
}

}  // namespace

absl::Status ResolveGradient(NodeSpec& spec, const Scope& scope) {
  if (spec.op != "Gradient" || spec.domain != "ai.onnx.preview.training") return absl::OkStatus();
  std::vector<std::string> names = spec.attributes.Strings("xs");
  const size_t wanted = names.size();
  for (std::string& name : spec.attributes.Strings("zs")) names.push_back(std::move(name));
  if (wanted == 0 || names.size() != spec.inputs.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", Counted(spec.inputs.size(), "operand", "operands"), ", but xs and zs name ",
                     Counted(names.size(), "value", "values"), ", of which xs at least one"));
  }
  for (size_t i = 0; i < names.size(); ++i) {
    ASSIGN_OR_RETURN(const Value* value, Named(names[i], scope));
    if (value == spec.inputs[i]) continue;
    return absl::UnimplementedError(
        absl::StrCat("differentiates at another value than '", names[i], "', which is operand ", i));
  }
  ASSIGN_OR_RETURN(Value * y, Named(spec.attributes.String("y"), scope));
  spec.domain = kPipecDomain;
  spec.inputs.resize(wanted);
  spec.inputs.push_back(y);
  spec.attributes = {};
  return absl::OkStatus();
}

}  // namespace pipec
