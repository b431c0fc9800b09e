#include "compiler/onnx/in_place/in_place.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

namespace pipec {

const Meaning& InPlaceNode::operand(int i) const {
  static const auto* const kAbsent = new Meaning(Absent());
  return i < operands.size() ? operands[i] : *kAbsent;
}

absl::StatusOr<const onnx::GraphProto*> InPlaceNode::Body(absl::string_view attribute) const {
  for (const auto& candidate : proto.attribute()) {
    if (candidate.name() != attribute) continue;
    if (candidate.has_g()) return &candidate.g();
    if (!candidate.ref_attr_name().empty()) {
      return absl::UnimplementedError(absl::StrCat(
          "its subgraph ", attribute, " is an attribute of the function around it, which is not supported"));
    }
  }
  return absl::InvalidArgumentError(absl::StrCat("has no subgraph ", attribute));
}

InPlaceRule FindInPlaceRule(absl::string_view op) {
  static const auto* const kRules = [] {
    auto* rules = new absl::flat_hash_map<absl::string_view, InPlaceRule>();
    for (const auto& family : {ControlFlowOps(), ScanOps(), SequenceOps(), OptionalOps()}) {
      for (const InPlaceOp& row : family) (*rules)[row.op] = row.rule;
    }
    return rules;
  }();
  auto it = kRules->find(op);
  return it == kRules->end() ? nullptr : it->second;
}

}  // namespace pipec
