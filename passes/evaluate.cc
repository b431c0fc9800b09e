#include "passes/evaluate.h"

#include <cstring>
#include <fstream>
#include <memory>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "compiler/ops/op_info.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/cpu_device.h"

namespace pipec {
namespace {

constexpr std::align_val_t kAlignment{64};

struct AlignedDelete {
  void operator()(std::byte* bytes) const { operator delete[](bytes, kAlignment); }
};
using AlignedBytes = std::unique_ptr<std::byte[], AlignedDelete>;

// Kernels are promised aligned memory.
AlignedBytes NewBytes(int64_t bytes) {
  AlignedBytes memory(new (kAlignment) std::byte[bytes > 0 ? bytes : 1]);
  std::memset(memory.get(), 0, bytes);
  return memory;
}

KernelOperand Operand(const Value* value) {
  return value ? KernelOperand{.type = value->type} : KernelOperand{.present = false};
}

}  // namespace

absl::StatusOr<std::string> ReadData(const Value& value) {
  const TensorData& data = value.data;
  if (data.bytes) return *data.bytes;
  if (!data.file)
    return absl::NotFoundError(absl::StrCat("the contents of '", value.name(), "' are missing"));
  std::string bytes(data.length, '\0');
  std::ifstream file(*data.file, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(data.offset));
  if (!file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()))) {
    return absl::NotFoundError(
        absl::StrCat("the contents of '", value.name(), "': ", *data.file, " cannot be read"));
  }
  return bytes;
}

KernelSpec SpecOf(const Node& node) {
  KernelSpec spec{.op = node.op(), .domain = node.domain(), .name = node.name(), .attributes = node.attributes};
  for (const Value* input : node.inputs()) spec.inputs.push_back(Operand(input));
  for (const Value* output : node.outputs()) spec.outputs.push_back(Operand(output));
  return spec;
}

absl::StatusOr<std::vector<std::string>> Evaluate(const Node& node,
                                                  absl::Span<const std::string* const> inputs) {
  if (AliasOf(node) == Alias::kView) return std::vector<std::string>{*inputs[0]};
  if (!HasKernel("cpu", node.op(), node.domain())) {
    return absl::UnimplementedError(absl::StrCat("no cpu kernel for ", node.op()));
  }
  // A device belongs to one thread.
  thread_local const std::unique_ptr<Device> device = MakeCpuDevice(1);
  KernelSpec spec = SpecOf(node);
  std::vector<AlignedBytes> memory;
  std::vector<const void*> sources;
  std::vector<void*> results;
  for (int i = 0; i < node.inputs().size(); ++i) {
    if (!node.input(i)) {
      sources.push_back(nullptr);
      continue;
    }
    memory.push_back(NewBytes(inputs[i]->size()));
    std::memcpy(memory.back().get(), inputs[i]->data(), inputs[i]->size());
    spec.inputs[i].constant = memory.back().get();
    sources.push_back(memory.back().get());
  }
  for (const Value* output : node.outputs()) {
    if (output) memory.push_back(NewBytes(output->type.bytes()));
    results.push_back(output ? memory.back().get() : nullptr);
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<Kernel> kernel, device->Prepare(spec));
  ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream, device->NewStream());
  const AlignedBytes workspace = NewBytes(kernel->workspace_bytes());
  StepScalars scalars;
  scalars.training = false;
  scalars.valid_samples = int64_t{1} << 30;  // no sample is padding
  RETURN_IF_ERROR(kernel->Launch(*stream, {sources.data(), results.data(), &scalars, workspace.get()}));
  RETURN_IF_ERROR(stream->Synchronize(absl::InfiniteFuture()));
  std::vector<std::string> contents;
  for (int k = 0; k < node.outputs().size(); ++k) {
    const Value* output = node.outputs()[k];
    contents.emplace_back(static_cast<const char*>(results[k]), output ? output->type.bytes() : 0);
  }
  return contents;
}

}  // namespace pipec
