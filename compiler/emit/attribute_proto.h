// Attributes in a plan.
#pragma once

#include "runtime/base/attributes.h"
#include "runtime/plan/plan.pb.h"

namespace pipec {

void AddAttributes(const Attributes& attributes, plan::Instruction& instruction);

}  // namespace pipec
