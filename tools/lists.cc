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
#include "tools/support/values.h"

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

}  // namespace

std::string ListOps(bool json) {
  nlohmann::ordered_json array = nlohmann::ordered_json::array();
  std::string text;
  absl::StrAppendFormat(&text, "%-12s %-36s %-5s %-5s %-9s %s\n", "domain", "op", "cpu", "cuda", "gradient",
                        "opsets");
  const auto yes = [](bool is) { return is ? "yes" : "-"; };
  for (const OpRow& row : OpRows()) {
    const char* gradient = Name(row.gradient);
    array.push_back({{"op", row.op},
                     {"domain", row.domain},
                     {"opsets", row.opsets},
                     {"cpu", row.cpu},
                     {"cuda", row.cuda},
                     {"gradient", gradient}});
    absl::StrAppendFormat(&text, "%-12s %-36s %-5s %-5s %-9s %s\n",
                          row.domain.empty() ? "ai.onnx" : row.domain, row.op, yes(row.cpu), yes(row.cuda),
                          gradient, absl::StrJoin(row.opsets, ","));
  }
  return json ? array.dump(1) + "\n" : text;
}

std::string ListSchedules() {
  std::string text;
  for (const ScheduleInfo& info : AllSchedules()) {
    absl::StrAppendFormat(&text, "%-14s %s\n", std::string(info.name), std::string(info.summary));
  }
  return text;
}

std::string ListPasses() {
  std::string text;
  for (const PassInfo& pass : AllPasses()) {
    absl::StrAppendFormat(&text, "%-26s %-9s -> %-9s %s\n", std::string(pass.name),
                          std::string(Name(pass.before)), std::string(Name(pass.after)),
                          std::string(pass.why_here));
  }
  return text;
}

std::string ListDevices() {
  std::string text = "pipec --device=...\n";
  for (const DeviceProfile& device : AllDeviceProfiles()) {
    const std::string memory =
        device.memory_bytes > 0 ? FormatSize(device.memory_bytes) : "this machine's memory";
    absl::StrAppendFormat(&text, "  %-8s %.3g TFLOP/s float32, %.3g GB/s, %s; %s\n", device.name,
                          device.flops_per_second * 1e-12, device.bytes_per_second * 1e-9, memory,
                          device.source);
  }
  absl::StrAppend(&text, "piperun --device=...\n  cpu      oneDNN and vectorised loops\n",
                  "  null     no arithmetic\n  replay   no arithmetic, but kernels and messages take their modelled time\n");
  const auto found = [](bool is_there) { return is_there ? "found" : "missing"; };
  absl::StrAppend(&text, "not in this version: device cuda, transports nccl and mpi\n  CUDA toolkit ",
                  found(PIPEC_CUDA_FOUND), ", NCCL ", found(PIPEC_NCCL_FOUND), ", MPI ",
                  found(PIPEC_MPI_FOUND), "\n");
  return text;
}

}  // namespace pipec
