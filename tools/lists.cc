#include "tools/lists.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler/cost/cluster.h"
#include "compiler/onnx/schema/opsets.h"
#include "compiler/ops/op_info.h"
#include "compiler/schedule/schedule.h"
#include "passes/gradients/gradient.h"
#include "passes/pass.h"
#include "runtime/base/format_size.h"
#include "tools/support/build.h"

namespace pipec {
namespace {

struct OpRow {
  std::string op, domain;
  std::vector<int> opsets;
  bool cpu, cuda;
  GradientKind gradient;
};

const char* Name(GradientKind kind) {
  return kind == GradientKind::kRule ? "rule" : kind == GradientKind::kFunction ? "function" : "none";
}

std::vector<OpRow> OpRows() {
  std::vector<OpRow> rows;
  const auto add = [&rows](const std::string& op, const std::string& domain, const std::vector<int>& opsets) {
    rows.push_back({op, domain, opsets, HasKernel("cpu", op, domain), HasKernel("cuda", op, domain),
                    GradientKindOf(op, domain)});
  };
  for (const OpHistory& history : OpHistories()) add(history.op, history.domain, history.opsets);
  for (const OpInfo& info : AllOps()) {
    if (info.domain == kPipecDomain) add(std::string(info.op), std::string(info.domain), {1});
  }
  return rows;
}

// Columns as wide as their longest cell, the last one open.
std::string AlignedTable(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths(rows[0].size(), 0);
  for (const auto& row : rows) {
    for (size_t k = 0; k < row.size(); ++k) widths[k] = std::max(widths[k], row[k].size());
  }
  std::string text;
  for (const auto& row : rows) {
    for (size_t k = 0; k + 1 < row.size(); ++k)
      absl::StrAppendFormat(&text, "%-*s", static_cast<int>(widths[k] + 2), row[k]);
    absl::StrAppend(&text, row.back(), "\n");
  }
  return text;
}

std::string Dumped(const nlohmann::ordered_json& json) { return json.dump(1) + "\n"; }

struct RunDevice {
  const char *name, *what;
};
constexpr RunDevice kRunDevices[] = {
    {"cpu", "oneDNN and vectorised loops"},
#if PIPEC_CUDA
    {"cuda", "GPUs of this host, several ranks on one if asked"},
#endif
    {"null", "no arithmetic"},
    {"replay", "no arithmetic, but kernels and messages take their modelled time"},
};

}  // namespace

std::string ListOps(bool json) {
  nlohmann::ordered_json array = nlohmann::ordered_json::array();
  std::vector<std::vector<std::string>> table = {{"domain", "op", "cpu", "cuda", "gradient", "opsets"}};
  const auto yes = [](bool is) { return is ? "yes" : "-"; };
  for (const OpRow& row : OpRows()) {
    const char* gradient = Name(row.gradient);
    array.push_back({{"op", row.op},
                     {"domain", row.domain},
                     {"opsets", row.opsets},
                     {"cpu", row.cpu},
                     {"cuda", row.cuda},
                     {"gradient", gradient}});
    table.push_back({row.domain.empty() ? "ai.onnx" : row.domain, row.op, yes(row.cpu), yes(row.cuda),
                     gradient, absl::StrJoin(row.opsets, ",")});
  }
  return json ? Dumped(array) : AlignedTable(table);
}

std::string ListSchedules(bool json) {
  nlohmann::ordered_json array = nlohmann::ordered_json::array();
  std::vector<std::vector<std::string>> table = {{"schedule", "update", "bubble", "activations", "versions",
                                                  "messages", "needed V", "placement", "needed M"}};
  for (const ScheduleInfo& info : AllSchedules()) {
    const std::string name(info.name), update(info.update_rule), bubble(info.bubble),
        activations(info.activations), versions(info.versions), messages(info.messages),
        needed_m(info.needed_microbatches), needed_v(info.needed_virtual_stages),
        placement(Name(info.placement));
    array.push_back({{"name", name},
                     {"update_rule", update},
                     {"bubble", bubble},
                     {"activations", activations},
                     {"versions", versions},
                     {"messages", messages},
                     {"needed_microbatches", needed_m},
                     {"needed_virtual_stages", needed_v},
                     {"default_virtual_stages", info.default_virtual_stages},
                     {"placement", placement}});
    const std::string of_them =
        needed_v == "any" ? absl::StrCat(", default ", info.default_virtual_stages) : std::string();
    table.push_back(
        {name, update, bubble, activations, versions, messages, needed_v + of_them, placement, needed_m});
  }
  if (json) return Dumped(array);
  return absl::StrCat(AlignedTable(table),
                      "P ranks, M microbatches, V stages a rank, r a rank; N = M / max(1, M/P); F, I, W: "
                      "times of forward, input gradient, "
                      "weight\ngradient of 1/P of the model, B = I + W, F&B of a pair. Bubble: idle time of "
                      "a rank in a step, stages equal, "
                      "messages free.\nActivations: most that a rank keeps, in microbatches of 1/P of the "
                      "model. Messages: per microbatch, "
                      "between neighbours.\n");
}

std::string ListPasses(bool json) {
  nlohmann::ordered_json array = nlohmann::ordered_json::array();
  std::vector<std::vector<std::string>> table = {{"pass", "before", "after", "why it stands here"}};
  for (const PassInfo& pass : AllPasses()) {
    const std::string name(pass.name), before(Name(pass.before)), after(Name(pass.after)), why(pass.why_here);
    array.push_back({{"name", name}, {"before", before}, {"after", after}, {"why_here", why}});
    table.push_back({name, before, after, why});
  }
  return json ? Dumped(array) : AlignedTable(table);
}

std::string ListDevices(bool json) {
  nlohmann::ordered_json object = {{"pipec", nlohmann::ordered_json::array()},
                                   {"piperun", nlohmann::ordered_json::array()}};
  std::string text = "pipec --device=...\n";
  for (const DeviceProfile& device : AllDeviceProfiles()) {
    const std::string memory =
        device.memory_bytes > 0 ? FormatSize(device.memory_bytes) : "this machine's memory";
    absl::StrAppendFormat(&text, "  %-8s %.3g TFLOP/s float32, %.3g GB/s, %s; %s\n", device.name,
                          device.flops_per_second * 1e-12, device.bytes_per_second * 1e-9, memory,
                          device.source);
    object["pipec"].push_back({{"name", device.name},
                               {"flops_per_second", device.flops_per_second},
                               {"bytes_per_second", device.bytes_per_second},
                               {"memory_bytes", device.memory_bytes},
                               {"source", device.source}});
  }
  absl::StrAppend(&text, "piperun --device=...\n");
  for (const auto& [name, what] : kRunDevices) {
    absl::StrAppendFormat(&text, "  %-8s %s\n", name, what);
    object["piperun"].push_back({{"name", name}, {"what", what}});
  }
  absl::StrAppend(&text, MissingInBuild(), "\n");
  return json ? Dumped(object) : text;
}

}  // namespace pipec
