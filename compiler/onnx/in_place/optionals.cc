// Optionals, of which it is known whether they have an element: with one they are that element.
#include "compiler/onnx/in_place/in_place.h"
#include "compiler/onnx/schema/emit_node.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

using Result = absl::StatusOr<std::vector<Meaning>>;

bool HasElement(const Meaning& meaning) {
  return !std::holds_alternative<Absent>(meaning) && !std::holds_alternative<EmptyOptional>(meaning);
}

Result Make(const InPlaceNode& node, InPlaceImporter&) {
  if (HasElement(node.operand(0))) return std::vector<Meaning>{node.operand(0)};
  return std::vector<Meaning>{EmptyOptional()};
}

Result Has(const InPlaceNode& node, InPlaceImporter& importer) {
  if (const auto* refusal = std::get_if<absl::Status>(&node.operand(0))) return *refusal;
  return std::vector<Meaning>{AddBool(importer.graph(), node.name, HasElement(node.operand(0)))};
}

Result Get(const InPlaceNode& node, InPlaceImporter&) {
  if (HasElement(node.operand(0))) return std::vector<Meaning>{node.operand(0)};
  return absl::InvalidArgumentError("asks for the element of an optional that has none");
}

constexpr InPlaceOp kOps[] = {{"Optional", Make}, {"OptionalHasElement", Has}, {"OptionalGetElement", Get}};

}  // namespace

absl::Span<const InPlaceOp> OptionalOps() { return kOps; }

}  // namespace pipec
