// onnx-conformance: ONNX's backend suite through compiler, plan and runtime. The last line is
// `passed N failed M skipped K`.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <regex>

#include "absl/strings/str_cat.h"
#include "compiler/onnx/read/read_model.h"
#include "runtime/base/status.h"
#include "tests/conformance/compare.h"
#include "tests/conformance/known_gaps.h"
#include "tests/conformance/run_model.h"
#include "tests/conformance/suite.h"
#include "tools/support/flags.h"

namespace pipec {
namespace {

struct Flags {
  std::string suite, filter, gaps;
  int stages = 1;
  bool self_test = false;
};

// Another value in place of the first element; of none, one element more.
void Corrupt(Tensor& tensor) {
  std::string bytes = *tensor.data.bytes;
  if (bytes.empty()) bytes.resize(SizeOf(tensor.type.dtype));
  // Flips the highest bits of the first element: its sign and, in a float, its exponent.
  bytes[std::max<int64_t>(SizeOf(tensor.type.dtype), 1) - 1] ^= 0x60;
  tensor.data.bytes = std::make_shared<const std::string>(std::move(bytes));
}

absl::Status CompareAll(const NamedArrays& got, const std::vector<NamedTensor>& wanted) {
  if (got.size() > wanted.size()) {
    return absl::DataLossError(absl::StrCat("has ", got.size(), " outputs, wanted ", wanted.size()));
  }
  for (const NamedTensor& output : wanted) {
    const auto it = got.find(output.name);
    if (it == got.end()) return absl::DataLossError(absl::StrCat("output '", output.name, "' is missing"));
    const TensorType& type = output.tensor.type;
    if (it->second.type != type) {
      return absl::DataLossError(absl::StrCat("output '", output.name, "' is ", ToString(it->second.type),
                                              ", wanted ", ToString(type)));
    }
    const absl::Status same = Compare(type, it->second.bytes, *output.tensor.data.bytes);
    if (!same.ok()) return absl::DataLossError(absl::StrCat("output '", output.name, "': ", same.message()));
  }
  return absl::OkStatus();
}

absl::Status RunTest(const SuiteTest& test, const Flags& flags, const std::string& folder) {
  std::ifstream file(test.model, std::ios::binary);
  onnx::ModelProto model;
  if (!model.ParseFromIstream(&file)) return absl::InvalidArgumentError("the model does not parse");
  ASSIGN_OR_RETURN(SuiteData data, ReadData(test, model));
  ASSIGN_OR_RETURN(const ModelRuns runs,
                   RunModel(test.model, model, data, {.stages = flags.stages, .folder = folder}));
  if (flags.stages > 1 && !runs.cut) {
    const int nodes = model.graph().node_size();
    return absl::CancelledError(
        nodes == 1 ? "" : absl::StrCat("what folding leaves of ", nodes, " nodes cannot be cut"));
  }
  if (runs.cut) {
    for (const auto& [name, array] : runs.whole) {
      if (runs.cut->at(name).bytes != array.bytes) {
        return absl::DataLossError(absl::StrCat("output '", name, "' is not that of one stage, bit by bit"));
      }
    }
  }
  if (flags.self_test) {
    for (NamedTensor& output : data.outputs) Corrupt(output.tensor);
  }
  return CompareAll(runs.whole, data.outputs);
}

int Run(const Flags& flags) {
  const absl::StatusOr<std::vector<SuiteTest>> tests = FindTests(flags.suite);
  if (!tests.ok()) return Refuse("onnx-conformance", tests.status());
  absl::StatusOr<std::vector<KnownGap>> gaps = std::vector<KnownGap>();
  if (!flags.gaps.empty()) gaps = ReadKnownGaps(flags.gaps);
  if (!gaps.ok()) return Refuse("onnx-conformance", gaps.status());
  std::string folder = (std::filesystem::temp_directory_path() / "onnx-conformance-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr)
    return Refuse("onnx-conformance", absl::InternalError("no temporary folder"));
  const std::regex filter(flags.filter.empty() ? ".*" : flags.filter);
  int passed = 0, failed = 0, skipped = 0;
  for (const SuiteTest& test : *tests) {
    if (!std::regex_search(test.name, filter)) continue;
    const KnownGap* gap = FindGap(*gaps, test.name);
    absl::Status status = RunTest(test, flags, folder);
    // A list of gaps must not hide what passes.
    const bool closed = gap != nullptr && status.ok();
    if (closed) status = absl::FailedPreconditionError("passes, but is in the list of gaps");
    if (absl::IsCancelled(status)) {
      ++skipped;
      if (!status.message().empty()) std::cout << "skipped " << test.name << ": " << status.message() << "\n";
    } else if (gap != nullptr && !closed) {
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
  std::cout << "passed " << passed << " failed " << failed << " skipped " << skipped << std::endl;
  if (passed + failed == 0) return Refuse("onnx-conformance", absl::NotFoundError("no test ran"));
  return failed == 0 ? kExitDone : kExitRefused;
}

int Main(int argc, char** argv) {
  Flags flags;
  FlagTable table("onnx-conformance", "--suite=DIR [flags]",
                  "runs ONNX's backend tests through compiler, plan and runtime");
  table.String("suite", "DIR", &flags.suite, "folder of tests: node, simple, pytorch-converted, light, ...");
  table.Int("stages", "N", &flags.stages, 1, "also cut into N stages, bit by bit the same");
  table.String("filter", "REGEX", &flags.filter, "tests whose name matches", "all");
  table.String("gaps", "FILE", &flags.gaps,
               "tests that do not pass, with reasons; one that passes counts as failed", "none");
  table.OnOff("self-test", &flags.self_test, "spoil every expected output: every test must fail");
  table.Check([&flags] {
    return flags.suite.empty() ? absl::InvalidArgumentError("--suite is missing") : absl::OkStatus();
  });
  if (const std::optional<int> exit = table.Parse(argc, argv)) return *exit;
  return Run(flags);
}

}  // namespace
}  // namespace pipec

int main(int argc, char** argv) { return pipec::Main(argc, argv); }
