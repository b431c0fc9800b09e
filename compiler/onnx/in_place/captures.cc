#include "compiler/onnx/in_place/captures.h"

#include "absl/container/flat_hash_set.h"

namespace pipec {
namespace {

class Collector {
 public:
  void Visit(const onnx::NodeProto& node) {
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g()) Visit(attribute.g());
      for (const auto& graph : attribute.graphs()) Visit(graph);
    }
  }

  std::vector<std::string> captures;

 private:
  using Names = absl::flat_hash_set<std::string>;

  void Visit(const onnx::GraphProto& graph) {
    Names& own = defined_.emplace_back();
    for (const auto& input : graph.input()) own.insert(input.name());
    for (const auto& tensor : graph.initializer()) own.insert(tensor.name());
    for (const auto& tensor : graph.sparse_initializer()) own.insert(tensor.values().name());
    for (const auto& node : graph.node()) own.insert(node.output().begin(), node.output().end());
    for (const auto& node : graph.node()) {
      for (const std::string& input : node.input()) Use(input);
      Visit(node);
    }
    for (const auto& output : graph.output()) Use(output.name());
    defined_.pop_back();
  }

  void Use(const std::string& name) {
    if (name.empty()) return;
    for (const Names& names : defined_) {
      if (names.contains(name)) return;
    }
    if (seen_.insert(name).second) captures.push_back(name);
  }

  std::vector<Names> defined_;  // by the subgraphs around the place that is being looked at, outermost first
  Names seen_;
};

}  // namespace

std::vector<std::string> Captures(const onnx::NodeProto& node) {
  Collector collector;
  collector.Visit(node);
  return std::move(collector.captures);
}

}  // namespace pipec
