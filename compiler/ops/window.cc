// Convolutions and pooling: windows over the spatial axes of (N, C, D1, ..., Dn).
#include "compiler/ops/costs.h"
#include "compiler/ops/families.h"

namespace pipec {
namespace {

double TapsOf(const Value* w) {
  double taps = 1;
  for (size_t i = 2; i < w->type.shape.size(); ++i) taps *= static_cast<double>(w->type.shape[i]);
  return taps;
}

// Operand 1 is W: (channels of Y, channels of X in a group, taps).
NodeCost ConvCost(const Node& node) {
  const Value* w = node.input(1);
  const double each = static_cast<double>(w->type.shape[1]) * TapsOf(w);
  return {2.0 * static_cast<double>(Elements(node.output(0))) * each, BytesOf(node)};
}

// Operand 1 is W: (channels of X, channels of Y in a group, taps).
NodeCost ConvTransposeCost(const Node& node) {
  const Value* w = node.input(1);
  const double each = static_cast<double>(w->type.shape[1]) * TapsOf(w);
  return {2.0 * static_cast<double>(Elements(node.input(0))) * each, BytesOf(node)};
}

NodeCost PoolCost(const Node& node) {
  double taps = 1;
  for (int64_t k : node.attributes.Ints("kernel_shape")) taps *= static_cast<double>(k);
  return {static_cast<double>(Elements(node.output(0))) * taps, BytesOf(node)};
}

const OpInfo kRows[] = {
    {"Conv", "", ConvCost},
    {"ConvTranspose", "", ConvTransposeCost},
    {"MaxPool", "", PoolCost},
    {"AveragePool", "", PoolCost},
    {"LpPool", "", PoolCost},
    {"GlobalMaxPool", "", PerInputElement<1>},
    {"GlobalAveragePool", "", PerInputElement<1>},
    {"GlobalLpPool", "", PerInputElement<2>},
};

}  // namespace

absl::Span<const OpInfo> WindowOps() { return kRows; }

}  // namespace pipec
