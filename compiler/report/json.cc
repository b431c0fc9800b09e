#include <nlohmann/json.hpp>

#include "compiler/report/report.h"

namespace pipec {

std::string ReportJson(const Report& report) {
  nlohmann::ordered_json out;
  out["model"] = report.model;
  out["mode"] = report.mode == Mode::kTrain ? "train" : "infer";
  out["schedule"] = report.schedule;
  if (!report.optimizer.empty()) out["optimizer"] = report.optimizer;
  out["precision"] = Name(report.precision);
  out["device"] = report.device;
  out["ranks"] = report.shape.ranks;
  out["replicas"] = report.replicas;
  out["virtual_stages"] = report.shape.virtual_stages;
  out["microbatches"] = report.shape.microbatches;
  out["batch"] = report.batch;
  out["times"] = Name(report.origins);
  out["message_times"] = std::string(Name(report.message_origin));
  out["stages"] = nlohmann::ordered_json::array();
  for (const StageRow& row : report.stages) {
    out["stages"].push_back({{"stage", row.stage},
                             {"rank", row.rank},
                             {"device", row.device},
                             {"nodes", row.nodes},
                             {"parameters", row.parameters},
                             {"flop", row.flop},
                             {"forward_s", row.forward_seconds},
                             {"backward_s", row.backward_seconds},
                             {"messages_s", row.message_seconds},
                             {"times", Name(row.origins)},
                             {"sent_bytes", row.sent_bytes},
                             {"memory_limit", row.memory_limit},
                             {"peak_bytes", row.peak_bytes},
                             {"live_bytes", row.live_bytes},
                             {"workspace_bytes", row.workspace_bytes}});
  }
  out["simulated"] = NameOfSimulated(report.origins);  // what follows
  out["bubble_ratio"] = report.bubble_ratio;
  out["step_time_s"] = report.step_seconds;
  out["step_span"] = report.step_span;
  out["bound_ratio"] = report.bound_ratio;
  out["bound_s"] = report.bound_seconds;
  out["peak_bytes"] = report.peak_bytes;
  out["workspace_bytes"] = report.workspace_bytes;
  out["memory_limit"] = report.memory_limit;
  if (!report.candidates.empty()) {
    out["candidates"] = nlohmann::ordered_json::array();
    for (const CandidateRow& row : report.candidates) {
      nlohmann::ordered_json& candidate = out["candidates"].emplace_back();
      candidate["schedule"] = row.schedule;
      candidate["virtual_stages"] = row.shape.virtual_stages;
      candidate["ranks"] = row.shape.ranks;
      candidate["microbatches"] = row.shape.microbatches;
      if (row.refusal.empty()) {
        candidate["batch"] = row.batch;
        candidate["step_time_s"] = row.step_seconds;
        candidate["order_s"] = row.order_seconds;
        candidate["bubble_ratio"] = row.bubble_ratio;
        candidate["peak_bytes"] = row.peak_bytes;
      } else {
        candidate["refusal"] = row.refusal;
      }
    }
    out["candidates_bound_s"] = report.candidates_bound_seconds;
    out["candidates_passed_over"] = report.candidates_passed_over;
  }
  out["sent_bytes"] = report.sent_bytes;
  if (!report.alternatives.empty()) {
    out["alternatives"] = nlohmann::ordered_json::array();
    for (const Alternative& other : report.alternatives) {
      out["alternatives"].push_back({{"name", other.name},
                                     {"step_time_s", other.step_seconds},
                                     {"sent_bytes", other.sent_bytes},
                                     {"peak_bytes", other.peak_bytes}});
    }
  }
  out["advice"] = report.advice;
  out["notes"] = report.notes;
  // A file's name may be any bytes.
  return out.dump(2, ' ', /*ensure_ascii=*/false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace pipec
