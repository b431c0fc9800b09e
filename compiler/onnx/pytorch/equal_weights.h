// Parameters that hold the same numbers. An exporter that folds constants writes a weight that its model uses
// in two places as two initializers, one of them transposed; in the file nothing says that they were one.
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/graph.h"

namespace pipec {

// A line for the user for each pair of used parameters in memory that have the same contents, as they are or
// transposed. Vectors, and matrices of one number (as initial values often are), are not looked at.
std::vector<std::string> NoteEqualWeights(const Graph& graph);

}  // namespace pipec
