#include "runtime/executor/step_block.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "runtime/base/status.h"
#include "runtime/executor/instruction.h"

namespace pipec {
namespace {

int64_t Align(int64_t bytes) { return (bytes + 63) / 64 * 64; }

int64_t ScalarBytes(int64_t microbatches, int64_t parameters) {
  return Align(microbatches * sizeof(StepScalars)) + Align(parameters * sizeof(ParameterScalars));
}

}  // namespace

int64_t StepBlock::DeviceBytes(int64_t microbatches, int64_t parameters,
                               absl::Span<const int64_t> input_bytes) {
  int64_t bytes = ScalarBytes(microbatches, parameters);
  for (const int64_t input : input_bytes) bytes += microbatches * Align(input);
  return bytes;
}

absl::StatusOr<std::unique_ptr<StepBlock>> StepBlock::Create(const plan::RankPlan& rank_plan, Device& device,
                                                             LaggingDevice& lagging) {
  std::unique_ptr<StepBlock> block(new StepBlock);
  const int64_t microbatches = rank_plan.microbatches();
  for (const plan::Parameter& parameter : rank_plan.parameters())
    block->parameters_ = std::max<int64_t>(block->parameters_, parameter.index() + 1);
  block->scalar_bytes_ = ScalarBytes(microbatches, block->parameters_);
  int64_t end = block->scalar_bytes_;
  std::vector<int64_t> inputs, outputs;  // where they lie
  const auto place = [&](const plan::Port& port, std::vector<int64_t>& at, std::vector<int64_t>& bytes) {
    for (int64_t m = 0; m < microbatches; ++m) {
      at.push_back(end);
      bytes.push_back(TypeOf(rank_plan.tensors(port.tensor())).bytes());
      end += Align(bytes.back());
    }
  };
  std::vector<int64_t> each;  // input's bytes
  for (const plan::Port& port : rank_plan.inputs()) {
    place(port, inputs, block->input_bytes_);
    each.push_back(block->input_bytes_.back());
  }
  block->sent_bytes_ = DeviceBytes(microbatches, block->parameters_, each);
  for (const plan::Port& port : rank_plan.outputs()) place(port, outputs, block->output_bytes_);
  const int64_t figures = end;
  end += Align(sizeof(StepFigures));
  ASSIGN_OR_RETURN(block->pinned_, lagging.AllocatePinned(end));
  ASSIGN_OR_RETURN(block->device_, device.Allocate(block->sent_bytes_));
  for (int64_t at : inputs) {
    block->pinned_inputs_.push_back(block->pinned_ + at);
    block->inputs_.push_back(block->device_ + at);
  }
  for (int64_t at : outputs) block->outputs_.push_back(block->pinned_ + at);
  block->figures_ = block->pinned_ + figures;
  ASSIGN_OR_RETURN(block->sent_, device.NewEvent());
  ASSIGN_OR_RETURN(block->ended_, device.NewEvent());
  return block;
}

void StepBlock::PackScalars(absl::Span<const StepScalars> scalars) {
  const int64_t own = Align(scalars.size() * sizeof(StepScalars));
  const ParameterScalars* const parameters = scalars[0].parameters;
  for (size_t m = 0; m < scalars.size(); ++m) {
    auto* const packed = new (pinned_ + m * sizeof(StepScalars)) StepScalars(scalars[m]);
    if (parameters != nullptr) packed->parameters = reinterpret_cast<const ParameterScalars*>(device_ + own);
  }
  if (parameters != nullptr)
    std::copy_n(parameters, parameters_, reinterpret_cast<ParameterScalars*>(pinned_ + own));
}

absl::Status StepBlock::Send(Device& device, absl::Span<const StepScalars> scalars,
                             absl::Span<const std::byte* const> inputs, Stream& copies, Stream& stream) {
  PackScalars(scalars);
  for (size_t i = 0; i < pinned_inputs_.size(); ++i)
    std::memcpy(pinned_inputs_[i], inputs[i], input_bytes_[i]);
  RETURN_IF_ERROR(device.CopyToDevice(copies, device_, pinned_, sent_bytes_));
  RETURN_IF_ERROR(copies.Record(*sent_));
  return stream.Wait(*sent_, absl::InfinitePast());
}

absl::Status StepBlock::SendScalars(Device& device, absl::Span<const StepScalars> scalars, Stream& stream) {
  PackScalars(scalars);
  return device.CopyToDevice(stream, device_, pinned_, scalar_bytes_);
}

void StepBlock::Deliver(absl::Span<std::byte* const> outputs) const {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] != nullptr) std::memcpy(outputs[i], outputs_[i], output_bytes_[i]);
  }
}

}  // namespace pipec
