#include "compiler/onnx/in_place/in_place.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

namespace pipec {

const Meaning& InPlaceNode::operand(int i) const {
  static const auto* const kAbsent = new Meaning(Absent());
  return i < operands.size() ? operands[i] : *kAbsent;
}

bool InPlaceNode::HasBody(absl::string_view attribute) const {
  return std::any_of(proto.attribute().begin(), proto.attribute().end(),
                     [&](const auto& candidate) { return candidate.name() == attribute; });
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

InPlaceRule FindInPlaceRule(absl::string_view op, absl::string_view domain) {
  using Key = std::pair<absl::string_view, absl::string_view>;
  static const auto* const kRules = [] {
    auto* rules = new absl::flat_hash_map<Key, InPlaceRule>();
    for (const auto& family : {ControlFlowOps(), ScanOps(), SequenceOps(), OptionalOps(), AttentionOps()}) {
      for (const InPlaceOp& row : family) (*rules)[{row.op, row.domain}] = row.rule;
    }
    return rules;
  }();
  auto it = kRules->find(Key(op, domain));
  return it == kRules->end() ? nullptr : it->second;
}

}  // namespace pipec
