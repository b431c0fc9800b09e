// onnx-gradients: every test of ONNX's backend suite differentiated at its own shapes and attributes, in float64,
// against differences. The last line is `passed N failed M skipped K`.
#include <fstream>

#include "absl/strings/str_cat.h"
#include "compiler/onnx/import.h"
#include "passes/evaluate.h"
#include "runtime/base/status.h"
#include "tests/conformance/closed_model.h"
#include "tests/conformance/run_suite.h"
#include "tests/support/check_gradient.h"
#include "tools/support/flags.h"

namespace pipec {
namespace {

// Cancelled where there is nothing to differentiate.
absl::Status RunTest(const SuiteTest& test, const std::string& folder, const CheckGradientOptions& check) {
  std::ifstream file(test.model, std::ios::binary);
  onnx::ModelProto model;
  if (!model.ParseFromIstream(&file)) return absl::InvalidArgumentError("the model does not parse");
  const absl::StatusOr<SuiteData> data = ReadData(test, model);
  if (absl::IsUnimplemented(data.status()))
    return absl::CancelledError("elements of a type that is no number");
  RETURN_IF_ERROR(data.status());
  ASSIGN_OR_RETURN(const onnx::ModelProto closed, ClosedModel(model, *data));
  const std::string path = folder + "/model.onnx";
  std::ofstream out(path, std::ios::binary);
  if (!closed.SerializeToOstream(&out)) return absl::UnknownError(absl::StrCat("cannot write ", path));
  out.close();
  ImportOptions options;
  options.evaluate = [](const Node& node, absl::Span<const std::string* const> operands) {
    return Evaluate(node, operands);
  };
  ASSIGN_OR_RETURN(const std::unique_ptr<Module> module, ImportModel(path, options));
  return CheckGradient(*module, check);
}

int Main(int argc, char** argv) {
  SuiteFlags flags;
  FlagTable table("onnx-gradients", "--suite=DIR [flags]",
                  "compares gradients at the shapes and attributes of ONNX's backend tests with differences");
  AddSuiteFlags(table, flags, "node, simple, pytorch-converted, pytorch-operator",
                "spoil every gradient: none but those of 0 may pass");
  if (const std::optional<int> exit = table.Parse(argc, argv)) return *exit;
  return RunSuite("onnx-gradients", flags, [&flags](const SuiteTest& test, const std::string& folder) {
    return RunTest(test, folder, {.factor = flags.self_test ? 1.001 : 1});
  });
}

}  // namespace
}  // namespace pipec

int main(int argc, char** argv) { return pipec::Main(argc, argv); }
