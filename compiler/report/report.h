// What pipec says about a finished module (level planned): figures, and four ways to show them. Every time
// says where it comes from (compiler/cost/origin.h); bytes are exact.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/cost/cluster.h"
#include "compiler/ir/module.h"
#include "compiler/report/alternatives.h"
#include "compiler/report/origins.h"
#include "compiler/report/step_picture.h"

namespace pipec {

struct StageRow {
  int stage = 0;
  int rank = 0;
  int nodes = 0;
  int64_t parameters = 0;      // elements of the parameters that its forward nodes read
  double flop = 0;             // per microbatch, forward and backward
  double forward_seconds = 0;  // per microbatch
  double backward_seconds = 0;
  Origins origins;             // of these seconds
  double message_seconds = 0;  // of what it sends and receives, each tensor once, per microbatch
  int64_t sent_bytes = 0;      // per microbatch, to other stages
  std::string device;          // of its rank
  int64_t memory_limit = 0;    // of its rank; 0: none
  int64_t peak_bytes = 0;      // of its rank
  int64_t workspace_bytes = 0; // of its rank, beside that: what its kernels and steps want, as far as it is known
  // Of its rank: the largest sum of what is live at once, instruction by instruction over its list of actions
  // (passes/rank_timeline.h). No layout is smaller. Where steps overlap, a slot is live for all of the step.
  int64_t live_bytes = 0;
};

// --schedule=auto, --stages=auto, --microbatches=auto: one of the plans that this one was chosen from.
struct CandidateRow {
  std::string schedule;
  ScheduleShape shape;
  int64_t batch = 0;  // samples a step
  double step_seconds = 0;
  double order_seconds = 0;  // until its last F, I or W ends
  double bubble_ratio = 0;
  int64_t peak_bytes = 0;
  std::string refusal;  // why it cannot be had; "": it can

  double sample_seconds() const { return step_seconds / static_cast<double>(batch); }
};

struct Report {
  std::string model;
  std::string schedule;
  Mode mode = Mode::kTrain;
  DType precision = DType::kFloat32;  // what is computed in
  std::string optimizer;              // "" in mode infer
  std::string device;                 // whose rates the times are modelled with; several: how many of each
  ScheduleShape shape;
  int replicas = 1;
  int64_t batch = 0;  // samples per step
  std::vector<StageRow> stages;
  double bubble_ratio = 0;  // idle / (ranks x time of F, B, I and W)
  double step_seconds = 0;  // the update included
  std::string step_span;    // from when to when these are
  // The slowest stage, its messages counted, over the partitioner's lower bound; with several stages a rank
  // the slowest rank. 0: no bound.
  double bound_ratio = 0;
  double bound_seconds = 0;
  int64_t peak_bytes = 0;    // of the rank that needs most
  int64_t workspace_bytes = 0;  // the most that a rank has beside that
  int64_t memory_limit = 0;  // of a device, the smallest if they differ
  Origins origins;           // of the seconds of all nodes of a step, the update included
  Origin message_origin = Origin::kModelled;
  std::vector<CandidateRow> candidates;     // the fastest a sample first; empty: nothing was left to choose
  int candidates_passed_over = 0;           // pairs of ranks and microbatches that cannot be among the two first
  double candidates_bound_seconds = 0;      // what no order_seconds of stages cut and placed so can beat; 0: not known
  double sent_bytes = 0;                    // per step, all ranks together
  std::vector<Alternative> alternatives;    // the same devices used otherwise
  std::vector<std::string> advice;
  std::vector<std::string> notes;
};

// What advice keeps to: what the user fixed, and what was chosen as the best there is.
struct Settled {
  bool batch = false;         // samples a step (--batch)
  bool microbatches = false;  // --microbatches=auto
};

Report MakeReport(const Module& module, const Cluster& cluster, const Settled& settled = {});

// The table, the figures under it, each marked with where it comes from, and before them what was assumed.
std::string ReportText(const Report& report);

// One object: stages (rows), bubble_ratio, step_time_s, bound_ratio, peak_bytes and what the plan is for.
std::string ReportJson(const Report& report);

// The modelled step as a Chrome trace: a process a rank; compute, and each direction of messages, on a thread
// of its own.
std::string ModelledTrace(const Module& module);

// A schedule beside the plan's own.
struct ComparedStep {
  std::string schedule;
  std::optional<StepPicture> step;
  std::string refusal;  // why there is no step
};

// One page without references to anything outside it: figures, the timeline of a step, under it the measured
// one and those of other schedules, on one scale; memory over time; stage loads.
std::string ReportHtml(const Module& module, const Report& report,
                       const std::vector<ComparedStep>& compared = {},
                       const std::optional<StepPicture>& measured = std::nullopt);

}  // namespace pipec
