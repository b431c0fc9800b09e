// onnx-conformance: ONNX's backend suite through compiler, plan and runtime. The last line is
// `passed N failed M skipped K`.
#include <algorithm>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "compiler/onnx/read/read_model.h"
#include "passes/gradients/gradient.h"
#include "runtime/base/status.h"
#include "tests/conformance/compare.h"
#include "tests/conformance/run_model.h"
#include "tests/conformance/run_suite.h"
#include "tools/support/flags.h"

namespace pipec {
namespace {

struct Flags {
  SuiteFlags suite;
  int stages = 1;
  std::string device = "cpu";
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

// Whether gradients flow through every op of the model: CUDA has kernels for all of these.
bool Trains(const onnx::GraphProto& graph) {
  return std::all_of(graph.node().begin(), graph.node().end(), [](const onnx::NodeProto& node) {
    return GradientKindOf(node.op_type(), node.domain()) != GradientKind::kNone;
  });
}

absl::Status RunTest(const SuiteTest& test, const Flags& flags, const std::string& folder) {
  std::ifstream file(test.model, std::ios::binary);
  onnx::ModelProto model;
  if (!model.ParseFromIstream(&file)) return absl::InvalidArgumentError("the model does not parse");
  ASSIGN_OR_RETURN(SuiteData data, ReadData(test, model));
  const bool on_cuda = flags.device == "cuda";
  const absl::StatusOr<ModelRuns> done =
      RunModel(test.model, model, data, {.stages = flags.stages, .on_cuda = on_cuda, .folder = folder});
  if (on_cuda && absl::IsUnimplemented(done.status()) && !Trains(model.graph()))
    return absl::CancelledError(absl::StrCat("no gradient, and ", done.status().message()));
  RETURN_IF_ERROR(done.status());
  const ModelRuns& runs = *done;
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
  if (flags.suite.self_test) {
    for (NamedTensor& output : data.outputs) Corrupt(output.tensor);
  }
  return CompareAll(runs.whole, data.outputs);
}

int Main(int argc, char** argv) {
  Flags flags;
  FlagTable table("onnx-conformance", "--suite=DIR [flags]",
                  "runs ONNX's backend tests through compiler, plan and runtime");
  AddSuiteFlags(table, flags.suite, "node, simple, pytorch-converted, light, ...",
                "spoil every expected output: every test must fail");
  table.Int("stages", "N", &flags.stages, 1, "also cut into N stages, bit by bit the same");
#if PIPEC_CUDA
  table.Choice("device", &flags.device, {"cpu", "cuda"}, "what runs the plans");
#endif
  if (const std::optional<int> exit = table.Parse(argc, argv)) return *exit;
  return RunSuite(
      "onnx-conformance", flags.suite,
      [&flags](const SuiteTest& test, const std::string& folder) { return RunTest(test, flags, folder); });
}

}  // namespace
}  // namespace pipec

int main(int argc, char** argv) { return pipec::Main(argc, argv); }
