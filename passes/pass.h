// What a pass is: a function over the module. pipeline.cc holds the ordered table.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/cost/cluster.h"
#include "compiler/ir/module.h"

namespace pipec {

// What runs again for the backward pass: all forward nodes, or as few as memory asks for, if auto.
enum class Recompute : uint8_t { kNone, kAll, kAuto };

// --lora: weights whose name the expression finds learn as a product of this rank.
struct LoraTarget {
  std::string regex;
  int64_t rank = 0;
};

// What the user asked for, after the flags were checked for form. Defaults are cli.md's.
struct CompileOptions {
  Mode mode = Mode::kTrain;
  int ranks = 2;
  int virtual_stages = 0;        // 0: what the schedule needs
  std::string schedule = "1f1b";
  std::shared_ptr<const Schedule> schedule_from_file;  // instead of one by name, if there is one
  // That file's order was made for the memory that there is beside stages cut for one microbatch in flight: these
  // are cut so, and whether it all fits is seen when memory is planned.
  bool cut_for_one_in_flight = false;
  // Or it was made for the stages of this schedule, which has its shape and placement; null: it was not.
  std::shared_ptr<const Schedule> cut_for;
  int microbatches = 32;
  bool lr_by_delay = false;      // --staleness=lr
  int replicas = 1;
  std::string loss = "auto";     // auto, output:NAME[*WEIGHT],..., cross-entropy, mse, bce
  double label_smoothing = 0;
  int64_t ignore_index = -100;
  std::string class_weights;     // an .npy file; "": none
  std::string optimizer = "adamw";
  DType precision = DType::kFloat32;  // what ops compute in: float32, bfloat16 or float16
  std::string train_regex;       // "" : all float parameters
  std::string freeze_regex;
  std::vector<LoraTarget> lora;
  Recompute recompute = Recompute::kAuto;
  // By rank, bytes that the cut may fill with what it counts; empty: as many as it likes. Whether it all fits the
  // devices is seen when memory is planned.
  std::vector<int64_t> cut_memory;
  // Whether memory needs no tighter layout than what tells that the plan fits its devices, or does not.
  bool draft_memory = false;
  Cluster cluster;               // devices, memory limits, links
  std::vector<std::string> cut;  // names of values to cut at; empty: the partitioner decides
  uint64_t seed = 0;
  // Bytes of workspace that the kernel of a node wants on its rank's device, beside the arena; null, or 0: not known.
  std::function<int64_t(const Node& node, int rank)> workspace_bytes;
  // Bytes that a rank's device wants beside both, for the scalars and inputs of one step: of so many microbatches, of
  // trained parameters up to such an index, and of inputs of so many bytes each a microbatch; null, or 0: none.
  std::function<int64_t(int rank, int64_t microbatches, int64_t parameters, absl::Span<const int64_t> input_bytes)>
      step_bytes;
};

struct PassContext {
  CompileOptions options;
};

// Returns whether it changed anything. Errors: InvalidArgument, FailedPrecondition and the like are the user's to
// mend and say how; Internal is ours.
using PassFunction = absl::StatusOr<bool> (*)(Module&, const PassContext&);

struct PassInfo {
  absl::string_view name;     // the file's name in kebab-case
  PassFunction run;
  Level before;               // the level it needs
  Level after;                // the level it leaves the module in
  bool training_only;
  absl::string_view why_here; // the reason for its position
};

// The ordered table.
absl::Span<const PassInfo> AllPasses();
const PassInfo* FindPass(absl::string_view name);

}  // namespace pipec
