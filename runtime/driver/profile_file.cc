#include "runtime/driver/profile_file.h"

#include "nlohmann/json.hpp"
#include "runtime/base/atomic_file.h"

namespace pipec {

absl::Status WriteProfile(Session& session, absl::string_view device, const std::string& path) {
  using nlohmann::json;
  json nodes = json::array();
  for (int rank = 0; rank < session.ranks(); ++rank) {
    for (const InstructionTime& time : session.executor(rank).profile()) {
      if (time.runs == 0) continue;
      nodes.push_back({{"name", std::string(time.node)},
                       {"op", std::string(time.op)},
                       {"stage", time.stage},
                       {"kind", plan::ActionKind_Name(time.kind)},
                       {"seconds", time.seconds / static_cast<double>(time.runs)},
                       {"runs", time.runs}});
    }
  }
  const json document = {{"device", std::string(device)},
                         {"model", session.manifest().model},
                         {"microbatch_size", session.manifest().microbatch_size},
                         {"nodes", std::move(nodes)}};
  return WriteFileAtomically(path, document.dump(1, ' ', true, json::error_handler_t::replace) + "\n");
}

}  // namespace pipec
