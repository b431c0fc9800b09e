// The host memory of one rank's step: its inputs, gathered from the data, and, if wanted, its outputs.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/data/data_source.h"
#include "runtime/executor/executor.h"
#include "runtime/plan/plan.pb.h"

namespace pipec {

class Feed {
 public:
  // `input_of_port[p]`: the place of the rank's input port p among the inputs the data was opened with.
  Feed(const plan::RankPlan& rank_plan, std::vector<int> input_of_port, bool with_outputs);

  // Gathers a step: `samples` has one entry per sample of the batch, microbatch by microbatch; -1 is padding.
  absl::Status Fill(const DataSource& data, absl::Span<const int64_t> samples);

  StepData data() { return {inputs_, absl::MakeSpan(outputs_)}; }
  // One microbatch of an output port, after the step.
  absl::Span<const std::byte> Output(int port, int microbatch) const;

 private:
  int microbatches_;
  int64_t microbatch_size_;
  std::vector<int> input_of_port_;
  std::vector<int64_t> output_bytes_;
  std::vector<std::byte> memory_;
  std::vector<const std::byte*> inputs_;
  std::vector<std::byte*> writable_inputs_, outputs_;
};

}  // namespace pipec
