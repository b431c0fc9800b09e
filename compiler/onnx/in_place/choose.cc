#include "compiler/onnx/in_place/choose.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/onnx/schema/emit_node.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

absl::StatusOr<Value*> ChooseTensor(InPlaceImporter& importer, const std::string& name, Value* condition,
                                    Value* yes, Value* no) {
  if (yes == no) return yes;
  if (yes->type != no->type) {
    return absl::UnimplementedError(absl::StrCat("only the run knows whether '", name, "' is ",
                                                 ToString(yes->type), " or ", ToString(no->type),
                                                 ", and a result must have one type"));
  }
  ASSIGN_OR_RETURN(const std::vector<Value*> results,
                   importer.Emit({.op = "Where", .name = name, .inputs = {condition, yes, no}}));
  return results[0];
}

}  // namespace

absl::StatusOr<Value*> ConditionScalar(InPlaceImporter& importer, const std::string& name,
                                       const Meaning& condition, absl::string_view what) {
  ASSIGN_OR_RETURN(Value * value, TensorOf(condition));
  if (value->type.dtype != DType::kBool || value->type.elements() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("its ", what, " must be one boolean, is ", ToString(value->type)));
  }
  if (value->type.shape.empty()) return value;
  Value* shape = AddInts(importer.graph(), absl::StrCat(name, "/scalar"), {});
  ASSIGN_OR_RETURN(const std::vector<Value*> results,
                   importer.Emit({.op = "Reshape", .name = name, .inputs = {value, shape}}));
  return results[0];
}

absl::StatusOr<Meaning> Choose(InPlaceImporter& importer, const std::string& name, Value* condition,
                               const Meaning& yes, const Meaning& no) {
  for (const Meaning* side : {&yes, &no}) {
    if (std::holds_alternative<absl::Status>(*side)) return *side;
  }
  const auto *many = std::get_if<Sequence>(&yes), *others = std::get_if<Sequence>(&no);
  if (many && others && many->elements.size() == others->elements.size()) {
    Sequence chosen{.dtype = many->dtype};
    for (size_t i = 0; i < many->elements.size(); ++i) {
      ASSIGN_OR_RETURN(Value * element, ChooseTensor(importer, absl::StrCat(name, "/", i), condition,
                                                     many->elements[i], others->elements[i]));
      chosen.elements.push_back(element);
    }
    return Meaning(std::move(chosen));
  }
  if (std::holds_alternative<Value*>(yes) && std::holds_alternative<Value*>(no)) {
    ASSIGN_OR_RETURN(Value * chosen,
                     ChooseTensor(importer, name, condition, std::get<Value*>(yes), std::get<Value*>(no)));
    return Meaning(chosen);
  }
  if (std::holds_alternative<EmptyOptional>(yes) && std::holds_alternative<EmptyOptional>(no)) return yes;
  return absl::UnimplementedError(absl::StrCat("only the run knows whether '", name, "' is ", Describe(yes),
                                               " or ", Describe(no), ", and a result must have one type"));
}

}  // namespace pipec
