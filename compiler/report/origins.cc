#include "compiler/report/origins.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace pipec {

void Add(const NodeTime& time, int times, Origins& origins) {
  const double seconds = time.seconds * times;
  switch (time.origin) {
    case Origin::kMeasured:
      origins.measured += seconds;
      break;
    case Origin::kFitted:
      origins.fitted += seconds;
      break;
    default:
      origins.modelled += seconds;
  }
}

Origins OriginsOf(const Module& module, const Cluster& cluster) {
  Origins origins;
  for (const Node* node : module.graph.Nodes()) {
    if (node->stage < 0 || node->stage >= static_cast<int>(module.stages.size()) || node->Is("Message", kPipecDomain))
      continue;
    Add(TimeOf(*node, cluster.devices[module.stages[node->stage].rank]),
        node->kind == Kind::kU ? 1 : module.schedule.shape.microbatches, origins);
  }
  return origins;
}

std::string Name(const Origins& origins) {
  const double sum = origins.measured + origins.fitted + origins.modelled;
  std::string name;
  for (const auto& [origin, seconds] :
       {std::pair(Origin::kMeasured, origins.measured), std::pair(Origin::kFitted, origins.fitted),
        std::pair(Origin::kModelled, origins.modelled)}) {
    if (seconds <= 0) continue;
    if (seconds >= sum) return std::string(Name(origin));
    // Never rounded to all or nothing.
    absl::StrAppendFormat(&name, "%s%.3g %% %s", name.empty() ? "" : ", ",
                          std::clamp(seconds / sum * 100, 0.1, 99.9), Name(origin));
  }
  return name.empty() ? std::string(Name(Origin::kModelled)) : name;
}

std::string NameOfSimulated(const Origins& origins) {
  const std::string name = Name(origins);
  if (name == Name(Origin::kModelled)) return name;
  const bool mixed = name.find('%') != std::string::npos;
  return mixed ? absl::StrCat("from costs ", name) : absl::StrCat("from ", name, " costs");
}

}  // namespace pipec
