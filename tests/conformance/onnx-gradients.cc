// onnx-gradients: every test of ONNX's backend suite differentiated at its own shapes and attributes, in float64,
// against differences. The last line is `passed N failed M skipped K`.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <regex>

#include "absl/strings/str_cat.h"
#include "compiler/onnx/import.h"
#include "passes/evaluate.h"
#include "runtime/base/status.h"
#include "tests/conformance/closed_model.h"
#include "tests/conformance/known_gaps.h"
#include "tests/conformance/suite.h"
#include "tests/support/check_gradient.h"
#include "tools/support/flags.h"

namespace pipec {
namespace {

struct Flags {
  std::string suite, filter, gaps;
  bool self_test = false;
};

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

int Run(const Flags& flags) {
  const absl::StatusOr<std::vector<SuiteTest>> tests = FindTests(flags.suite);
  if (!tests.ok()) return Refuse("onnx-gradients", tests.status());
  absl::StatusOr<std::vector<KnownGap>> gaps = std::vector<KnownGap>();
  if (!flags.gaps.empty()) gaps = ReadKnownGaps(flags.gaps);
  if (!gaps.ok()) return Refuse("onnx-gradients", gaps.status());
  std::string folder = (std::filesystem::temp_directory_path() / "onnx-gradients-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr)
    return Refuse("onnx-gradients", absl::InternalError("no temporary folder"));
  const std::regex filter(flags.filter.empty() ? ".*" : flags.filter);
  int passed = 0, failed = 0, skipped = 0;
  std::map<std::string, int> nothing;  // reason -> tests
  for (const SuiteTest& test : *tests) {
    if (!std::regex_search(test.name, filter)) continue;
    const KnownGap* gap = FindGap(*gaps, test.name);
    absl::Status status = RunTest(test, folder, {.factor = flags.self_test ? 1.001 : 1});
    if (absl::IsCancelled(status)) {
      ++skipped;
      ++nothing[std::string(status.message())];
      continue;
    }
    const bool closed = gap != nullptr && status.ok();
    if (closed) status = absl::FailedPreconditionError("passes, but is in the list of gaps");
    if (gap != nullptr && !closed) {
      ++skipped;
      std::cout << "skipped " << test.name << ": " << gap->reason << "\n";
    } else if (status.ok()) {
      ++passed;
    } else {
      ++failed;
      std::cout << "failed " << test.name << ": " << status.message() << "\n";
    }
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  for (const auto& [reason, count] : nothing)
    std::cout << "skipped " << count << " tests: " << reason << "\n";
  std::cout << "passed " << passed << " failed " << failed << " skipped " << skipped << std::endl;
  if (passed + failed == 0) return Refuse("onnx-gradients", absl::NotFoundError("no test ran"));
  return failed == 0 ? kExitDone : kExitRefused;
}

int Main(int argc, char** argv) {
  Flags flags;
  FlagTable table("onnx-gradients", "--suite=DIR [flags]",
                  "compares gradients at the shapes and attributes of ONNX's backend tests with differences");
  table.String("suite", "DIR", &flags.suite,
               "folder of tests: node, simple, pytorch-converted, pytorch-operator");
  table.String("filter", "REGEX", &flags.filter, "tests whose name matches", "all");
  table.String("gaps", "FILE", &flags.gaps,
               "tests that do not pass, with reasons; one that passes counts as failed", "none");
  table.OnOff("self-test", &flags.self_test, "spoil every gradient: none but those of 0 may pass");
  table.Check([&flags] {
    return flags.suite.empty() ? absl::InvalidArgumentError("--suite is missing") : absl::OkStatus();
  });
  if (const std::optional<int> exit = table.Parse(argc, argv)) return *exit;
  return Run(flags);
}

}  // namespace
}  // namespace pipec

int main(int argc, char** argv) { return pipec::Main(argc, argv); }
