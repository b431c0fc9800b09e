// The other ways to share the work among the same devices, estimated from the same graph.
#pragma once

#include <string>
#include <vector>

#include "compiler/cost/cluster.h"
#include "compiler/ir/module.h"

namespace pipec {

struct Alternative {
  std::string name;
  double step_seconds = 0;
  double sent_bytes = 0;    // per step, all devices together
  int64_t peak_bytes = 0;   // of a device
};

// What a training step of the module would be with its samples or its products shared among its P devices instead
// of its stages, by the times of its nodes and links, P > 1:
//  - data parallel: every device holds the whole model and takes 1/P of the microbatches; gradients are summed by a
//    ring
//    all-reduce, which sends 2 (P-1) / P of them per device and overlaps nothing;
//  - tensor parallel (Shoeybi et al., Megatron-LM, 1909.08053): every device takes 1/P of every node; of two
//    products with
//    weights that follow each other one sums its results over the devices in the forward pass, one its operand's
//    gradients in
//    the backward pass.
// Where devices differ all take equal shares, so the slowest decides, and so does the slowest link of the ring.
std::vector<Alternative> Alternatives(const Module& module, const Cluster& cluster);

// Bytes that the module sends in a step, all ranks together, and what one device would need for it alone.
double SentBytes(const Module& module);
int64_t BytesOnOneDevice(const Module& module);

}  // namespace pipec
