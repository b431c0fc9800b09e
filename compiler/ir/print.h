// Text form of a module at any level, for --print, --print-after and tests. Values in `name: float32[2,3]`
// form, one node a line, in execution order; from level staged on with stage and kind; then messages, the
// grid of actions and the buffers, as the level has them.
#pragma once

#include <string>

#include "compiler/ir/module.h"

namespace pipec {

std::string Print(const Module& module);

}  // namespace pipec
