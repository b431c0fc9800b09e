// pipec-opt: runs single passes over a model and prints the result: what the tests of passes look at.
#include <iostream>

#include "compiler/ir/print.h"
#include "compiler/ir/verify.h"
#include "passes/pass_manager.h"
#include "runtime/base/status.h"
#include "tools/compile_flags.h"
#include "tools/support/flags.h"
#include "tools/write_onnx.h"

namespace pipec {
namespace {

int Main(int argc, char** argv) {
  CompileFlags compile;
  std::vector<std::string> passes;
  std::string emit_directory;
  bool verify = false;
  FlagTable table("pipec-opt", "MODEL --passes=a,b,c [flags]",
                  "run these passes over a model and print the result");
  compile.AddTo(table);
  table.Group("Passes");
  table.List("passes", "a,b,c", &passes, "passes to run, in this order; pipec --list-passes names them");
  table.OnOff("verify", &verify, "check the result even if no pass changed anything");
  table.String("emit-onnx", "DIR", &emit_directory, "the result as DIR/model.onnx, and one file a stage",
               "none");
  table.Check([&] { return compile.RequireModel(); });
  if (const std::optional<int> exit = table.Parse(argc, argv)) return *exit;

  compile.allow_missing_weights = true;
  const auto run = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::unique_ptr<Module> module, compile.Import());
    RETURN_IF_ERROR(RunPasses(*module, compile.context(), passes));
    if (verify) RETURN_IF_ERROR(Verify(*module));
    std::cout << Print(*module);
    return emit_directory.empty() ? absl::OkStatus() : WriteOnnx(*module, emit_directory);
  };
  if (absl::Status status = run(); !status.ok()) return Refuse("pipec-opt", status);
  return Done("pipec-opt");
}

}  // namespace
}  // namespace pipec

int main(int argc, char** argv) { return pipec::Main(argc, argv); }
