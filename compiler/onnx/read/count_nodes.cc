#include "compiler/onnx/read/count_nodes.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/onnx/read/read_model.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

constexpr int64_t kMost = int64_t{1} << 62;

class Counter {
 public:
  explicit Counter(const onnx::ModelProto& model) {
    for (const auto& function : model.functions()) {
      functions_[FunctionKey(function.domain(), function.name(), function.overload())].function = &function;
    }
  }

  absl::StatusOr<int64_t> Count(const Nodes& nodes) {
    int64_t count = 0;
    for (const auto& node : nodes) {
      ASSIGN_OR_RETURN(const int64_t own, CountCall(node));
      count = std::min(count + own, kMost);
      for (const auto& attribute : node.attribute()) {
        if (attribute.has_g()) {
          ASSIGN_OR_RETURN(const int64_t inner, Count(attribute.g().node()));
          count = std::min(count + inner, kMost);
        }
        for (const auto& graph : attribute.graphs()) {
          ASSIGN_OR_RETURN(const int64_t inner, Count(graph.node()));
          count = std::min(count + inner, kMost);
        }
      }
    }
    return count;
  }

 private:
  struct Entry {
    const onnx::FunctionProto* function = nullptr;
    int64_t nodes = -1;  // not counted yet
    bool active = false;
  };

  // 1 for a node that calls no function of the model.
  absl::StatusOr<int64_t> CountCall(const onnx::NodeProto& node) {
    if (functions_.empty()) return 1;
    auto it = functions_.find(FunctionKey(node.domain(), node.op_type(), node.overload()));
    if (it == functions_.end()) return 1;
    Entry& entry = it->second;
    if (entry.nodes >= 0) return entry.nodes;
    path_.push_back(it->first);
    if (entry.active || path_.size() > kMaxCallDepth) {
      return absl::InvalidArgumentError(absl::StrCat("function ", it->first,
                                                     " calls itself, or calls are nested more than ",
                                                     kMaxCallDepth, " deep: ", absl::StrJoin(path_, " > ")));
    }
    entry.active = true;
    ASSIGN_OR_RETURN(entry.nodes, Count(entry.function->node()));
    entry.active = false;
    path_.pop_back();
    return entry.nodes;
  }

  absl::flat_hash_map<std::string, Entry> functions_;
  std::vector<std::string> path_;
};

}  // namespace

absl::StatusOr<int64_t> CountExpandedNodes(const onnx::ModelProto& model) {
  return Counter(model).Count(model.graph().node());
}

}  // namespace pipec
