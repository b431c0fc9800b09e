#include "compiler/onnx/schema/opsets.h"

#include <map>
#include <set>

#include "onnx/defs/schema.h"

namespace pipec {

std::vector<OpHistory> OpHistories() {
  std::map<std::string, std::set<int>> versions;
  for (const onnx::OpSchema& schema : onnx::OpSchemaRegistry::get_all_schemas_with_history()) {
    if (schema.domain() == onnx::ONNX_DOMAIN) versions[schema.Name()].insert(schema.since_version());
  }
  std::vector<OpHistory> histories;
  for (const auto& [op, opsets] : versions) histories.push_back({op, "", {opsets.begin(), opsets.end()}});
  return histories;
}

}  // namespace pipec
