#include "runtime/driver/profile_file.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "nlohmann/json.hpp"
#include "runtime/base/atomic_file.h"
#include "runtime/executor/run_times.h"

namespace pipec {
namespace {

using nlohmann::json;

// Sends and receives of all ranks, paired.
json Messages(const std::vector<ProfileOfRank>& ranks) {
  using Tag = std::tuple<int, int, int, int>;
  auto tag_of = [](const MessageTag& t) { return Tag(t.from_stage, t.to_stage, t.kind, t.microbatch); };
  std::map<Tag, const MessageTime*> sends;
  for (const ProfileOfRank& rank : ranks) {
    for (const MessageTime& time : rank.messages) {
      if (time.sends && time.tag.microbatch >= 0) sends[tag_of(time.tag)] = &time;
    }
  }
  std::map<int64_t, RunTimes> by_bytes;
  for (const ProfileOfRank& rank : ranks) {
    for (const MessageTime& received : rank.messages) {
      const auto sent = received.sends ? sends.end() : sends.find(tag_of(received.tag));
      if (sent == sends.end()) continue;
      const auto ready = std::max(sent->second->posted, received.posted);
      if (received.awaited > ready || received.done < ready) continue;
      by_bytes[received.bytes].Add(std::chrono::duration<double>(received.done - ready).count());
    }
  }
  json rows = json::array();
  for (const auto& [bytes, times] : by_bytes)
    rows.push_back({{"bytes", bytes}, {"seconds", times.Typical()}, {"runs", times.runs()}});
  return rows;
}

}  // namespace

absl::Status WriteProfile(Session& session, int threads, const std::string& path) {
  std::vector<ProfileOfRank> ranks;
  // Replicas do all the same: the first tells.
  for (int rank = 0; rank < session.manifest().ranks; ++rank)
    ranks.push_back(session.executor(rank).profile());
  json nodes = json::array();
  double action_seconds = 0;
  for (const ProfileOfRank& rank : ranks) {
    action_seconds += rank.action_seconds / static_cast<double>(ranks.size());
    for (const InstructionTime& time : rank.instructions) {
      if (time.runs == 0) continue;
      nodes.push_back({{"name", std::string(time.node)},
                       {"op", std::string(time.op)},
                       {"stage", time.stage},
                       {"kind", plan::ActionKind_Name(time.kind)},
                       {"key", time.key},
                       {"flops", time.flops},
                       {"bytes", time.bytes},
                       {"seconds", time.seconds},
                       {"runs", time.runs}});
    }
  }
  const Manifest& manifest = session.manifest();
  const json document = {{"pipec_profile", 2},
                         {"device", std::string(session.device_name())},
                         {"threads", threads},
                         {"ranks", session.ranks()},
                         {"model", manifest.model},
                         {"schedule", manifest.schedule},
                         {"microbatches", manifest.microbatches},
                         {"microbatch_size", manifest.microbatch_size},
                         {"nodes", std::move(nodes)},
                         {"action_seconds", action_seconds},
                         {"messages", Messages(ranks)}};
  return WriteFileAtomically(path, document.dump(1, ' ', true, json::error_handler_t::replace) + "\n");
}

}  // namespace pipec
