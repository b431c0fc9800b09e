#include "compiler/emit/check_kernels.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/ops/op_info.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

// "node 'n' (Op), opset 17".
std::string Describe(const Module& module, const Node& node) {
  const bool onnx = node.domain().empty();
  return absl::StrCat("node '", node.name(), "' (", onnx ? "" : absl::StrCat(node.domain(), "::"), node.op(),
                      ")", onnx && module.opset > 0 ? absl::StrCat(", opset ", module.opset) : "");
}

// gpu: null if the rank is none.
absl::Status CheckNode(const Module& module, const Node& node, int rank, const DeviceProfile* gpu) {
  const bool on_cpu = HasKernel("cpu", node.op(), node.domain()),
             on_cuda = HasKernel("cuda", node.op(), node.domain());
  if (gpu != nullptr && on_cpu && !on_cuda) {
    return absl::UnimplementedError(absl::StrCat(
        Describe(module, node), ": the CUDA device has no kernel for this op, and rank ", rank,
        " is planned for ", gpu->name, "; --device=cpu plans for one that has, pipec --list-ops lists both"));
  }
  if (on_cpu || on_cuda) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat(Describe(module, node),
                   ": no device has a kernel for this op; pipec --list-ops lists those that are there"));
}

}  // namespace

absl::Status CheckKernels(const Module& module, const Cluster* cluster) {
  for (int rank = 0; rank < static_cast<int>(module.memory.size()); ++rank) {
    const DeviceProfile* const device = cluster != nullptr ? &cluster->devices[rank] : nullptr;
    const DeviceProfile* const gpu = device != nullptr && IsGpu(*device) ? device : nullptr;
    for (const Program& program : module.memory[rank].programs) {
      for (const Node* node : program.nodes) RETURN_IF_ERROR(CheckNode(module, *node, rank, gpu));
    }
  }
  return absl::OkStatus();
}

}  // namespace pipec
