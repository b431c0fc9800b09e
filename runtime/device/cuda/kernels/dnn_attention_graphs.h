// Attention and its gradient as graphs that cuDNN compiles (dnn_graph.h).
#pragma once

#include <cudnn.h>

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/device/cuda/kernels/dnn_graph.h"
#include "runtime/device/operands/attention.h"

namespace pipec::cuda {

// Heads that one plan computes: so many of each of so many samples, one after the other.
struct AttentionTile {
  int64_t batch, heads;
  int64_t count() const { return batch * heads; }
};

// A compiled graph and the numbers of its operands; 0: it has none such.
struct AttentionGraph {
  using Tensor = DnnGraph::Tensor;

  DnnGraph graph;
  Tensor q = 0, k = 0, v = 0, o = 0;
  Tensor logs = 0;                         // of each row's sum of exponentials, float32
  Tensor mask = 0;                         // added, float32
  Tensor scale = 0, nothing = 0, one = 0;  // scalars: the attention's, -inf and 1
  Tensor d_o = 0, d_q = 0, d_k = 0, d_v = 0;
  Tensor along = 0;  // of each row, sum of dO * O; float32, written before it is read
};

// Of 16-bit floats, with no mask or one that is added whose columns lie next to each other, of at most two axes of
// heads. Unimplemented: cuDNN has no plan.
absl::StatusOr<std::shared_ptr<const AttentionGraph>> ComposeAttention(const Attention& a,
                                                                       const AttentionTile& tile,
                                                                       cudnnHandle_t dnn);
// (dO, Q, K, V, O, logs, mask?) -> (dQ, dK, dV), with no more workspace than dP of 16 bits takes.
absl::StatusOr<std::shared_ptr<const AttentionGraph>> ComposeAttentionGrad(const Attention& a,
                                                                           const AttentionTile& tile,
                                                                           cudnnHandle_t dnn);

// Bytes of dP: cuDNN's blocks are whole.
int64_t AttentionGradBytes(const Attention& a, int64_t heads);

}  // namespace pipec::cuda
