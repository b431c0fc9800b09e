#include "tools/kernel_workspace.h"

#include <vector>

#include "passes/evaluate.h"
#include "runtime/base/cost_key.h"
#include "runtime/device/cpu/cpu_device.h"

namespace pipec {
namespace {

std::vector<TensorType> TypesOf(const std::vector<KernelOperand>& operands) {
  std::vector<TensorType> types;
  for (const KernelOperand& operand : operands)
    types.push_back(operand.present ? operand.type : TensorType{});
  return types;
}

}  // namespace

int64_t KernelWorkspace::BytesOf(const Node& node, int threads) {
  Asked& asked = asked_[threads];
  if (!asked.device) asked.device = MakeCpuDevice(threads);
  KernelSpec spec = SpecOf(node);
  const auto [known, added] = asked.bytes.try_emplace(
      CostKey(spec.domain, spec.op, spec.attributes, TypesOf(spec.inputs), TypesOf(spec.outputs)), 0);
  if (!added) return known->second;
  for (size_t k = 0; k < spec.inputs.size(); ++k) {
    const Value* input = node.inputs()[k];
    if (input && input->kind() == ValueKind::kConstant && input->data.bytes)
      spec.inputs[k].constant = reinterpret_cast<const std::byte*>(input->data.bytes->data());
  }
  const absl::StatusOr<std::unique_ptr<Kernel>> kernel = asked.device->Prepare(spec);
  if (kernel.ok()) known->second = (*kernel)->workspace_bytes();
  return known->second;
}

}  // namespace pipec
