#include "compiler/emit/check_kernels.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/ops/op_info.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

absl::Status CheckNode(const Module& module, const Node& node) {
  if (HasKernel("cpu", node.op(), node.domain()) || HasKernel("cuda", node.op(), node.domain())) {
    return absl::OkStatus();
  }
  const bool onnx = node.domain().empty();
  return absl::UnimplementedError(
      absl::StrCat("node '", node.name(), "' (", onnx ? "" : absl::StrCat(node.domain(), "::"), node.op(),
                   ")", onnx && module.opset > 0 ? absl::StrCat(", opset ", module.opset) : "",
                   ": no device has a kernel for this op; pipec --list-ops lists those that are there"));
}

}  // namespace

absl::Status CheckKernels(const Module& module) {
  for (const RankMemory& rank : module.memory) {
    for (const Program& program : rank.programs) {
      for (const Node* node : program.nodes) RETURN_IF_ERROR(CheckNode(module, *node));
    }
  }
  return absl::OkStatus();
}

}  // namespace pipec
