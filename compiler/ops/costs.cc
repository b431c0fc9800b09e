#include "compiler/ops/costs.h"

namespace pipec {

int64_t Elements(const Value* value) { return value ? value->type.elements() : 0; }

double BytesOf(const Node& node) {
  double bytes = 0;
  for (const Value* value : node.inputs()) bytes += value ? value->type.bytes() : 0;
  for (const Value* value : node.outputs()) bytes += value ? value->type.bytes() : 0;
  return bytes;
}

}  // namespace pipec
