#include "runtime/device/cpu/kernels/onednn_kernel.h"

#include <utility>

#include "absl/strings/match.h"

namespace pipec::cpu {
namespace {

class OneDnnKernel : public Kernel {
 public:
  OneDnnKernel(dnnl::primitive primitive, const dnnl::memory::desc& scratchpad,
               std::vector<OneDnnArgument> operands)
      : stream_(OneDnnEngine()),
        primitive_(std::move(primitive)),
        operands_(std::move(operands)),
        workspace_bytes_(static_cast<int64_t>(scratchpad.get_size())) {
    for (const OneDnnArgument& operand : operands_) AddMemory(operand.name, operand.form);
    if (workspace_bytes_ > 0) AddMemory(DNNL_ARG_SCRATCHPAD, scratchpad);
  }

  int64_t workspace_bytes() const override { return workspace_bytes_; }

  // Through the C functions: the C++ ones put the arguments into containers on the heap.
  absl::Status Launch(Stream&, const KernelArguments& arguments) override {
    for (size_t i = 0; i < operands_.size(); ++i) {
      const OneDnnArgument& operand = operands_[i];
      void* const address = operand.is_output ? arguments.outputs[operand.operand]
                                              : const_cast<void*>(arguments.inputs[operand.operand]);
      dnnl_memory_set_data_handle_v2(arguments_[i].memory, address, stream_.get());
    }
    if (workspace_bytes_ > 0) {
      dnnl_memory_set_data_handle_v2(arguments_.back().memory, arguments.workspace, stream_.get());
    }
    const dnnl_status_t status = dnnl_primitive_execute(
        primitive_.get(), stream_.get(), static_cast<int>(arguments_.size()), arguments_.data());
    if (status == dnnl_success) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("oneDNN failed with status ", static_cast<int>(status)));
  }

 private:
  void AddMemory(int name, const dnnl::memory::desc& form) {
    memories_.push_back(dnnl::memory(form, OneDnnEngine(), DNNL_MEMORY_NONE));
    arguments_.push_back({name, memories_.back().get()});
  }

  dnnl::stream stream_;
  dnnl::primitive primitive_;
  const std::vector<OneDnnArgument> operands_;
  const int64_t workspace_bytes_;
  std::vector<dnnl::memory> memories_;      // what arguments_ point at
  std::vector<dnnl_exec_arg_t> arguments_;  // one an operand, then the scratchpad
};

}  // namespace

dnnl::engine& OneDnnEngine() {
  static auto* const engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

std::mutex& OneDnnCreation() {
  static auto* const mutex = new std::mutex;
  return *mutex;
}

dnnl::memory::data_type OneDnnType(DType dtype) {
  return dtype == DType::kBFloat16  ? dnnl::memory::data_type::bf16
         : dtype == DType::kFloat16 ? dnnl::memory::data_type::f16
                                    : dnnl::memory::data_type::f32;
}

absl::Status CheckImplementation(DType dtype, absl::string_view implementation) {
  if (dtype == DType::kFloat32 || !absl::StrContains(implementation, "ref")) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat("oneDNN has only reference loops for ", Name(dtype)));
}

dnnl::primitive_attr OneDnnAttributes() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

std::unique_ptr<Kernel> MakeOneDnnKernel(dnnl::primitive primitive, const dnnl::memory::desc& scratchpad,
                                         std::vector<OneDnnArgument> arguments) {
  return std::make_unique<OneDnnKernel>(std::move(primitive), scratchpad, std::move(arguments));
}

}  // namespace pipec::cpu
