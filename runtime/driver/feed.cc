#include "runtime/driver/feed.h"

#include <utility>

#include "runtime/base/status.h"
#include "runtime/executor/instruction.h"

namespace pipec {

Feed::Feed(const plan::RankPlan& rank_plan, std::vector<int> input_of_port, bool with_outputs)
    : microbatches_(static_cast<int>(rank_plan.microbatches())),
      microbatch_size_(rank_plan.microbatch_size()),
      input_of_port_(std::move(input_of_port)) {
  std::vector<int64_t> offsets;
  int64_t end = 0;
  auto place = [&](const plan::Port& port) {
    const int64_t bytes = TypeOf(rank_plan.tensors(port.tensor())).bytes();
    for (int m = 0; m < microbatches_; ++m) {
      offsets.push_back(end);
      end += (bytes + 63) / 64 * 64;
    }
    return bytes;
  };
  for (const plan::Port& port : rank_plan.inputs()) place(port);
  const size_t inputs = offsets.size();
  if (with_outputs) {
    for (const plan::Port& port : rank_plan.outputs()) output_bytes_.push_back(place(port));
  }
  memory_.resize(end);
  for (size_t i = 0; i < offsets.size(); ++i) {
    (i < inputs ? writable_inputs_ : outputs_).push_back(memory_.data() + offsets[i]);
  }
  inputs_.assign(writable_inputs_.begin(), writable_inputs_.end());
}

absl::Status Feed::Fill(const DataSource& data, absl::Span<const int64_t> samples) {
  for (size_t port = 0; port < input_of_port_.size(); ++port) {
    for (int m = 0; m < microbatches_; ++m) {
      RETURN_IF_ERROR(data.Read(input_of_port_[port], samples.subspan(m * microbatch_size_, microbatch_size_),
                                writable_inputs_[port * microbatches_ + m]));
    }
  }
  return absl::OkStatus();
}

absl::Span<const std::byte> Feed::Output(int port, int microbatch) const {
  return {outputs_[port * microbatches_ + microbatch], static_cast<size_t>(output_bytes_[port])};
}

}  // namespace pipec
