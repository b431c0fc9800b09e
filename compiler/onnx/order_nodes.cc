#include "compiler/onnx/order_nodes.h"

#include <functional>
#include <queue>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "compiler/onnx/in_place/captures.h"
#include "runtime/base/status.h"

namespace pipec {

std::string Describe(const onnx::NodeProto& node, absl::string_view prefix) {
  const std::string op =
      node.domain().empty() ? node.op_type() : absl::StrCat(node.domain(), "::", node.op_type());
  if (!node.name().empty()) return absl::StrCat("node '", prefix, node.name(), "' (", op, ")");
  return absl::StrCat("unnamed node (", op, ") that makes '", prefix,
                      node.output_size() > 0 ? node.output(0) : "", "'");
}

absl::StatusOr<std::vector<int>> OrderNodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes,
                                            const Scope& scope) {
  absl::flat_hash_map<absl::string_view, int> maker;
  maker.reserve(nodes.size());
  for (int n = 0; n < nodes.size(); ++n) {
    for (const std::string& output : nodes[n].output()) {
      if (output.empty()) continue;
      if (scope.Owns(output) || !maker.try_emplace(output, n).second) {
        return absl::InvalidArgumentError(
            absl::StrCat(Describe(nodes[n]), " defines '", output, "' a second time"));
      }
    }
  }
  std::vector<int> missing(nodes.size(), 0);
  std::vector<std::vector<int>> users(nodes.size());
  for (int n = 0; n < nodes.size(); ++n) {
    const auto use = [&](const std::string& name) -> absl::Status {
      if (name.empty()) return absl::OkStatus();
      if (auto it = maker.find(name); it != maker.end()) {
        ++missing[n];
        users[it->second].push_back(n);
      } else if (!scope.Find(name)) {
        return absl::InvalidArgumentError(
            absl::StrCat(Describe(nodes[n]), " uses '", name, "', which nothing defines"));
      }
      return absl::OkStatus();
    };
    for (const std::string& input : nodes[n].input()) RETURN_IF_ERROR(use(input));
    for (const std::string& capture : Captures(nodes[n])) RETURN_IF_ERROR(use(capture));
  }
  std::priority_queue<int, std::vector<int>, std::greater<int>> ready;
  for (int n = 0; n < nodes.size(); ++n) {
    if (missing[n] == 0) ready.push(n);
  }
  std::vector<int> order;
  order.reserve(nodes.size());
  while (!ready.empty()) {
    const int n = ready.top();
    ready.pop();
    order.push_back(n);
    for (int user : users[n]) {
      if (--missing[user] == 0) ready.push(user);
    }
  }
  for (int n = 0; n < nodes.size(); ++n) {
    if (missing[n] > 0)
      return absl::InvalidArgumentError(absl::StrCat(Describe(nodes[n]), " is part of a cycle"));
  }
  return order;
}

}  // namespace pipec
