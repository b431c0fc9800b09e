#include "compiler/cost/cluster_file.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/cost/json_fields.h"
#include "runtime/base/counted.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

using nlohmann::json;

// What a plan can say, and far from what a sum of times could not hold.
constexpr int64_t kMostDevices = 1 << 16;
constexpr double kMostRate = 1e21, kLongest = 3600;
constexpr int64_t kMostMemory = int64_t{1} << 60;

std::string At(const std::string& path, size_t index) { return absl::StrCat(path, "[", index, "]"); }

absl::StatusOr<Link> ReadLink(const JsonFields& fields) {
  Link link;
  ASSIGN_OR_RETURN(link.latency_seconds, fields.Number("latency_seconds", 0, kLongest));
  ASSIGN_OR_RETURN(link.bytes_per_second, fields.Number("bytes_per_second", 1, kMostRate));
  return link;
}

// Of the field "link".
absl::StatusOr<Link> ReadOwnLink(const JsonFields& parent) {
  ASSIGN_OR_RETURN(const JsonFields link,
                   parent.Object("link", {"latency_seconds", "bytes_per_second", "source"}));
  return ReadLink(link);
}

class ClusterReader {
 public:
  absl::StatusOr<Cluster> Read(const json& document) {
    ASSIGN_OR_RETURN(const JsonFields root,
                     JsonFields::Open(document, "$", {"hosts", "link", "pairs", "source"}));
    ASSIGN_OR_RETURN(const json* hosts, root.List("hosts"));
    for (size_t h = 0; h < hosts->size(); ++h) RETURN_IF_ERROR(ReadHost((*hosts)[h], At("$.hosts", h)));
    if (hosts->size() > 1 || root.Has("link")) {
      ASSIGN_OR_RETURN(cluster_.network, ReadOwnLink(root));
    }
    if (root.Has("pairs")) RETURN_IF_ERROR(ReadHostPairs(root));
    return std::move(cluster_);
  }

 private:
  absl::Status ReadHost(const json& object, const std::string& path) {
    ASSIGN_OR_RETURN(const JsonFields host,
                     JsonFields::Open(object, path, {"name", "devices", "link", "pairs", "source"}));
    ASSIGN_OR_RETURN(const std::string name, host.Text("name"));
    const int host_index = static_cast<int>(hosts_.size());
    if (!hosts_.emplace(name, host_index).second) return host.Wrong("name", "which another host has too");
    const size_t first = cluster_.devices.size();
    ASSIGN_OR_RETURN(const json* devices, host.List("devices"));
    for (size_t d = 0; d < devices->size(); ++d)
      RETURN_IF_ERROR(ReadDevices((*devices)[d], At(host.PathOf("devices"), d)));
    cluster_.host_of.resize(cluster_.devices.size(), host_index);
    const int count = static_cast<int>(cluster_.devices.size() - first);
    if (host.Has("link")) {
      ASSIGN_OR_RETURN(const Link link, ReadOwnLink(host));
      for (size_t r = first; r < cluster_.devices.size(); ++r) cluster_.devices[r].link = link;
    } else if (count > 1 && without_profile_) {
      return absl::InvalidArgumentError(
          absl::StrCat(host.PathOf("link"), " is missing, which devices without a profile need"));
    }
    without_profile_ = false;
    return host.Has("pairs") ? ReadDevicePairs(host, static_cast<int>(first), count) : absl::OkStatus();
  }

  absl::Status ReadDevices(const json& object, const std::string& path) {
    ASSIGN_OR_RETURN(const JsonFields fields,
                     JsonFields::Open(object, path,
                                      {"profile", "name", "count", "flops_per_second", "bytes_per_second",
                                       "launch_seconds", "memory_bytes", "source"}));
    DeviceProfile device;
    const bool has_profile = fields.Has("profile");
    if (has_profile) {
      ASSIGN_OR_RETURN(const std::string profile, fields.Text("profile"));
      const absl::StatusOr<DeviceProfile> found = FindDevice(profile);
      if (!found.ok()) return fields.Wrong("profile", found.status().message());
      device = *found;
    }
    without_profile_ |= !has_profile;
    const auto number = [&](const char* field, double least, double most, double& value) -> absl::Status {
      if (has_profile && !fields.Has(field)) return absl::OkStatus();
      ASSIGN_OR_RETURN(value, fields.Number(field, least, most));
      return absl::OkStatus();
    };
    if (fields.Has("name") || !has_profile) {
      ASSIGN_OR_RETURN(device.name, fields.Text("name"));
    }
    RETURN_IF_ERROR(number("flops_per_second", 1, kMostRate, device.flops_per_second));
    RETURN_IF_ERROR(number("bytes_per_second", 1, kMostRate, device.bytes_per_second));
    RETURN_IF_ERROR(number("launch_seconds", 0, kLongest, device.launch_seconds));
    if (fields.Has("memory_bytes") || device.memory_bytes == 0) {
      ASSIGN_OR_RETURN(device.memory_bytes, fields.Whole("memory_bytes", 1, kMostMemory));
    }
    if (fields.Has("source")) {
      ASSIGN_OR_RETURN(device.source, fields.Text("source"));
    }
    int64_t count = 1;
    if (fields.Has("count")) {
      ASSIGN_OR_RETURN(count, fields.Whole("count", 1, kMostDevices));
    }
    const DeviceProfile& namesake = named_.emplace(device.name, device).first->second;
    if (namesake.flops_per_second != device.flops_per_second ||
        namesake.bytes_per_second != device.bytes_per_second ||
        namesake.launch_seconds != device.launch_seconds) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, " is called '", device.name,
                       "', as devices of other rates are; \"name\" gives it a name of its own"));
    }
    if (static_cast<int64_t>(cluster_.devices.size()) + count > kMostDevices)
      return absl::InvalidArgumentError(
          absl::StrCat(path, " comes after too many devices; a plan has at most ", kMostDevices));
    cluster_.devices.insert(cluster_.devices.end(), count, device);
    return absl::OkStatus();
  }

  // Links between two devices of one host, given by their place in it.
  absl::Status ReadDevicePairs(const JsonFields& host, int first, int count) {
    return ReadPairs(
        host, "devices", cluster_.rank_links,
        [&](const json& which) {
          const bool is_one = which.is_number_integer() && which >= 0 && which < count;
          return is_one ? first + which.get<int>() : -1;
        },
        absl::StrCat("not two of the places 0 to ", count - 1, " of its devices"));
  }

  // Links between two hosts, given by name.
  absl::Status ReadHostPairs(const JsonFields& root) {
    return ReadPairs(
        root, "hosts", cluster_.host_links,
        [&](const json& which) {
          const auto it = which.is_string() ? hosts_.find(which.get<std::string>()) : hosts_.end();
          return it == hosts_.end() ? -1 : it->second;
        },
        "not two of the hosts' names");
  }

  template <typename Find>
  absl::Status ReadPairs(const JsonFields& parent, const char* field,
                         std::map<std::pair<int, int>, Link>& links, Find find, const std::string& wanted) {
    ASSIGN_OR_RETURN(const json* pairs, parent.List("pairs"));
    for (size_t k = 0; k < pairs->size(); ++k) {
      ASSIGN_OR_RETURN(const JsonFields pair,
                       JsonFields::Open((*pairs)[k], At(parent.PathOf("pairs"), k),
                                        {field, "latency_seconds", "bytes_per_second", "source"}));
      ASSIGN_OR_RETURN(const json* both, pair.Pair(field));
      const int a = find((*both)[0]), b = find((*both)[1]);
      if (a < 0 || b < 0 || a == b) return pair.Wrong(field, wanted);
      ASSIGN_OR_RETURN(const Link link, ReadLink(pair));
      if (!links.emplace(std::minmax(a, b), link).second) return pair.Wrong(field, "which stands twice");
    }
    return absl::OkStatus();
  }

  Cluster cluster_;
  std::map<std::string, int> hosts_;            // by name
  std::map<std::string, DeviceProfile> named_;  // the first of each name
  bool without_profile_ = false;                // some device of the host that is read
};

}  // namespace

absl::StatusOr<Cluster> ParseCluster(absl::string_view text) {
  ASSIGN_OR_RETURN(const json document, ParseJson(text));
  return ClusterReader().Read(document);
}

absl::StatusOr<Cluster> FirstDevices(Cluster cluster, int ranks) {
  const int devices = static_cast<int>(cluster.devices.size());
  if (devices < ranks) {
    return absl::InvalidArgumentError(absl::StrCat("has ", Counted(devices, "device", "devices"), ", ", ranks,
                                                   " ranks need as many; --stages=", devices, " fits"));
  }
  cluster.devices.resize(ranks);
  cluster.host_of.resize(ranks);
  std::erase_if(cluster.rank_links, [ranks](const auto& link) { return link.first.second >= ranks; });
  std::erase_if(cluster.host_links,
                [&](const auto& link) { return link.first.second > cluster.host_of.back(); });
  return cluster;
}

}  // namespace pipec
