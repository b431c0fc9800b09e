// One of two results, as a condition says that only the run knows: both are computed, one is taken.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "compiler/onnx/in_place/in_place.h"

namespace pipec {

// `condition` as bool []. InvalidArgument if it is no boolean with one element.
absl::StatusOr<Value*> ConditionScalar(InPlaceImporter& importer, const std::string& name,
                                       const Meaning& condition, absl::string_view what);

// Where(condition, yes, no), `condition` a bool []; sequences element by element. A refusal, if that is what
// one of them is. Unimplemented, naming both, if they are not of one type.
absl::StatusOr<Meaning> Choose(InPlaceImporter& importer, const std::string& name, Value* condition,
                               const Meaning& yes, const Meaning& no);

}  // namespace pipec
