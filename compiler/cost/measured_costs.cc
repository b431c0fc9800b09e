#include "compiler/cost/measured_costs.h"

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "compiler/cost/json_fields.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

using nlohmann::json;

constexpr int kVersion = 2;
constexpr double kDay = 86400, kMost = 1e30;

class Reader {
 public:
  Reader(const json& object, std::string what) : object_(object), what_(std::move(what)) {}

  // At least `least`, at most `most`.
  absl::StatusOr<double> Number(const char* field, double least, double most) const {
    const auto it = object_.find(field);
    if (it == object_.end() || !it->is_number()) return Wrong(field, "is no number");
    const double value = it->get<double>();
    if (value >= least && value <= most) return value;
    return Wrong(field, absl::StrCat("is ", value, ", not between ", least, " and ", most));
  }
  absl::StatusOr<double> Whole(const char* field, double least, double most) const {
    ASSIGN_OR_RETURN(const double value, Number(field, least, most));
    if (value == std::floor(value)) return value;
    return Wrong(field, absl::StrCat("is ", value, ", no whole number"));
  }
  absl::StatusOr<std::string> Text(const char* field) const {
    const auto it = object_.find(field);
    if (it == object_.end() || !it->is_string()) return Wrong(field, "is no text");
    std::string text = it->get<std::string>();
    if (HasControlCharacters(text)) return Wrong(field, "has control characters");
    return text;
  }
  absl::StatusOr<const json*> List(const char* field) const {
    const auto it = object_.find(field);
    if (it == object_.end() || !it->is_array()) return Wrong(field, "is no list");
    return &*it;
  }

 private:
  absl::Status Wrong(const char* field, absl::string_view why) const {
    return absl::InvalidArgumentError(absl::StrCat(what_, "'", field, "' ", why));
  }

  const json& object_;
  std::string what_;
};

absl::Status ReadNodes(const json& rows, MeasuredCosts& costs) {
  struct Sum {
    double seconds = 0, runs = 0;
    NodeCost cost;  // equal for one key
  };
  std::map<std::string, Sum> sums;
  for (size_t k = 0; k < rows.size(); ++k) {
    const Reader row(rows[k], absl::StrCat("node ", k, ": "));
    ASSIGN_OR_RETURN(const std::string key, row.Text("key"));
    ASSIGN_OR_RETURN(const double seconds, row.Number("seconds", 0, kDay));
    ASSIGN_OR_RETURN(const double runs, row.Number("runs", 1, 1e15));
    Sum& sum = sums[key];
    ASSIGN_OR_RETURN(sum.cost.flops, row.Number("flops", 0, kMost));
    ASSIGN_OR_RETURN(sum.cost.bytes, row.Number("bytes", 0, kMost));
    sum.seconds += seconds * runs;
    sum.runs += runs;
  }
  std::vector<MeasuredNode> nodes;
  for (const auto& [key, sum] : sums) {
    costs.node_seconds[key] = sum.seconds / sum.runs;
    nodes.push_back({key, sum.cost, sum.seconds / sum.runs});
  }
  costs.fitted = FittedCosts(nodes);
  return absl::OkStatus();
}

absl::Status ReadMessages(const json& rows, MeasuredCosts& costs) {
  for (size_t k = 0; k < rows.size(); ++k) {
    const Reader row(rows[k], absl::StrCat("message ", k, ": "));
    MeasuredMessage& message = costs.messages.emplace_back();
    ASSIGN_OR_RETURN(message.bytes, row.Number("bytes", 0, 1e15));
    ASSIGN_OR_RETURN(message.seconds, row.Number("seconds", 0, kDay));
    ASSIGN_OR_RETURN(message.runs, row.Number("runs", 1, 1e15));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<MeasuredCosts> ParseProfile(absl::string_view text) {
  const json document = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded() || !document.is_object() || !document.contains("pipec_profile"))
    return absl::InvalidArgumentError("not a profile of piperun --profile");
  const Reader profile(document, "");
  ASSIGN_OR_RETURN(const double version, profile.Number("pipec_profile", 0, 1e9));
  if (version != kVersion) {
    return absl::InvalidArgumentError(absl::StrCat("the profile is of version ", version,
                                                   ", this pipec reads ", kVersion,
                                                   "; piperun --profile of this version makes one"));
  }
  MeasuredCosts costs;
  ASSIGN_OR_RETURN(costs.device, profile.Text("device"));
  ASSIGN_OR_RETURN(costs.threads, profile.Whole("threads", 1, 1e6));
  ASSIGN_OR_RETURN(costs.ranks, profile.Whole("ranks", 1, 1e6));
  ASSIGN_OR_RETURN(costs.action_seconds, profile.Number("action_seconds", 0, kDay));
  ASSIGN_OR_RETURN(const json* nodes, profile.List("nodes"));
  RETURN_IF_ERROR(ReadNodes(*nodes, costs));
  ASSIGN_OR_RETURN(const json* messages, profile.List("messages"));
  RETURN_IF_ERROR(ReadMessages(*messages, costs));
  if (costs.node_seconds.empty()) return absl::InvalidArgumentError("the profile has no node");
  return costs;
}

absl::Status UseProfile(MeasuredCosts costs, Cluster& cluster) {
  const auto measured = std::make_shared<const MeasuredCosts>(std::move(costs));
  bool used = false;
  for (DeviceProfile& device : cluster.devices) {
    if (device.name != measured->device) continue;
    device.link = FitLink(measured->messages, device.link);
    device.measured = measured;
    used = true;
  }
  if (used) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the profile was measured on ", measured->device,
                                                 ", the plan is for ", cluster.DeviceNames()));
}

}  // namespace pipec
