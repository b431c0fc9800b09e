// The flags that say what to compile and for what: shared by pipec and pipec-opt.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/module.h"
#include "passes/pass.h"
#include "passes/plan_maker.h"
#include "passes/plan_space.h"
#include "tools/device_flags.h"
#include "tools/kernel_workspace.h"
#include "tools/support/flags.h"

namespace pipec {

class CompileFlags {
 public:
  // MODEL, which the caller may require, and the groups "Pipeline", "Model", "Training" and "Devices".
  void AddTo(FlagTable& table);

  // Decides what was left open (noting it with the flag that changes it), then reads the model.
  // InvalidArgument if the batch cannot be divided as asked, naming the nearest that can.
  absl::StatusOr<std::unique_ptr<Module>> Import();
  // Before Import: how much memory the cut may fill, by rank (CompileOptions::cut_memory), and whether all forward
  // nodes run again.
  void CutWithin(std::vector<int64_t> bytes_by_rank, bool recompute_all);
  void SetDraftMemory(bool draft) { context_.options.draft_memory = draft; }  // CompileOptions::draft_memory
  // Before Import: another schedule, by name, in the mode and with the ranks and microbatches of `other`, and the
  // stages a rank that were asked for, where that schedule can have as many.
  void UseSchedule(absl::string_view name, const Module& other);
  // What is to be chosen (auto), and of the ranks and microbatches there are to choose from.
  struct Open {
    bool schedule = false, stages = false, microbatches = false;
  };
  Open open() const;
  bool LeavesOpen() const { return open().schedule || open().stages || open().microbatches; }
  bool gives_batch() const { return batch_ > 0; }
  absl::StatusOr<PlanSpace> Space() const;
  // Before Import: what was chosen, of what was open; a candidate without a schedule's name leaves that open.
  void UseCandidate(const PlanCandidate& candidate);
  // Before Import: bytes that each device shall have, whatever the flags say.
  void SetMemory(int64_t bytes) { devices_.SetMemory(bytes); }
  std::string DeviceSource() const { return devices_.Source(); }
  // What Import would decide, without the model.
  absl::StatusOr<CompileOptions> Options() const;
  // Valid after Import.
  const PassContext& context() const { return context_; }
  const std::string& model() const { return model_; }
  absl::Status RequireModel() const {
    return model_.empty() ? absl::InvalidArgumentError("MODEL is missing") : absl::OkStatus();
  }

  // Weights in external files may be absent.
  bool allow_missing_weights = false;

 private:
  // Fills context_.options; returns the samples of a microbatch, 0 for the model's own.
  absl::StatusOr<int64_t> Resolve();
  absl::Status ReadScheduleFile();
  // As they are without a look at the model or at a schedule's file.
  bool Infers() const;
  std::string ScheduleName() const;
  // InvalidArgument if a flag is given that has no place beside the others.
  absl::Status CheckTogether() const;
  void AskForWorkspace();
  void Assume(std::string what) { notes_.push_back(std::move(what)); }

  std::string model_;
  // As given; "" and 0: left open.
  std::string mode_, schedule_, optimizer_, precision_ = "fp32", loss_ = "auto", recompute_ = "auto",
              staleness_ = "none";
  int stages_ = 0, microbatches_ = 0;
  bool stages_open_ = false, microbatches_open_ = false;
  int64_t batch_ = 0, seed_ = 0;
  std::map<std::string, int64_t> dims_;
  std::map<std::string, std::string> inputs_;
  bool allow_links_ = false;
  DeviceFlags devices_;
  std::shared_ptr<KernelWorkspace> kernels_ = std::make_shared<KernelWorkspace>();  // asked once for all copies of this
  PassContext context_;
  std::vector<std::string> notes_;
};

}  // namespace pipec
