// The flags of benches that compare with a program in Python.
#pragma once

#include <string>
#include <vector>

namespace pipec::bench {

struct ComparisonFlags {
  std::string python;  // the interpreter that has what is compared with
  std::vector<std::string> models;
  int pairs = 15;
};

// --python=PATH (else what PIPEC_TORCH_PYTHON names, else python3), --models=NAME,... (`models` unless said),
// --pairs=N. Ends the bench with usage if there is anything else, with a message if that Python does not have
// all `modules`, which are named as in an import.
ComparisonFlags ParseComparisonFlags(int argc, char** argv, const std::string& models,
                                     const std::string& modules);

}  // namespace pipec::bench
