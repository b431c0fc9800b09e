#include "passes/keep_cut.h"

#include <string>
#include <vector>

#include "absl/algorithm/container.h"

namespace pipec {

void KeepCut(Graph& graph, const CompileOptions& options, absl::string_view before, Value* result) {
  const std::vector<std::string>& cut = options.cut;
  if (absl::c_linear_search(cut, before) && !absl::c_linear_search(cut, result->name()) &&
      !absl::c_linear_search(graph.outputs, result)) {
    graph.Rename(result, before);
  }
}

}  // namespace pipec
