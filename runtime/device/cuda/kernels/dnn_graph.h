// A graph of operations that cuDNN compiles into one plan, by its backend API (cudnn_graph.h): tensors of four axes,
// products, element-wise operations and reductions between them. What lies between operations is virtual: it is
// nowhere kept.
#pragma once

#include <cudnn.h>

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/device/cuda/owned_handle.h"

namespace pipec::cuda {

class DnnGraph {
 public:
  // Dimensions, and elements from one entry of an axis to the next.
  struct Axes {
    std::array<int64_t, 4> dims, steps;
  };
  // Rows of rows: the last axis next to each other.
  static Axes Packed(const std::array<int64_t, 4>& dims);

  // A tensor of the graph, by the number that it has there, from 1.
  using Tensor = int64_t;
  enum class Kind {
    kOperand,  // in memory, aligned to 16 bytes: read, or written where operations give it
    kScalar,   // one element, in the host's memory, read when the plan runs
    kVirtual,
  };

  // Unimplemented, here and below: cuDNN has no plan for such a graph on this GPU. Internal: any other error of cuDNN.
  absl::StatusOr<Tensor> Add(Kind kind, cudnnDataType_t type, const Axes& axes);

  // c = a b over the last two axes, added in float32.
  absl::Status Multiply(Tensor a, Tensor b, Tensor c);
  // y = mode(operands...), of one to three operands, dimensions of 1 broadcast. `compute`: the type it is done in;
  // `axis`: whose indices CUDNN_POINTWISE_GEN_INDEX gives.
  absl::Status Apply(cudnnPointwiseMode_t mode, cudnnDataType_t compute, absl::Span<const Tensor> operands,
                     Tensor y, int64_t axis = -1);
  // Over the axes where y has 1.
  absl::Status Reduce(cudnnReduceTensorOp_t mode, Tensor x, Tensor y);

  // y is x with its last two axes exchanged.
  absl::Status Transpose(Tensor x, Tensor y);

  // Chooses the plan, once all operations are there: cuDNN's first whose results repeat bit by bit and that wants no
  // more than this workspace.
  absl::Status Compile(cudnnHandle_t dnn, int64_t most_workspace);

  int64_t workspace_bytes() const { return workspace_bytes_; }

  // On the stream: every operand and scalar with its address. The workspace is aligned to 256 bytes. cuDNN wants a
  // descriptor for each set of addresses, of the host's memory; a step that is a graph makes none.
  absl::Status Run(cudnnHandle_t dnn, cudaStream_t stream,
                   absl::Span<const std::pair<Tensor, const void*>> operands, void* workspace) const;

 private:
  using Descriptor = OwnedHandle<cudnnBackendDescriptor_t, cudnnBackendDestroyDescriptor>;

  // One that lives as long as the graph.
  absl::StatusOr<cudnnBackendDescriptor_t> New(cudnnBackendDescriptorType_t type);
  // An operation, to which its attributes are given.
  absl::StatusOr<cudnnBackendDescriptor_t> NewOperation(cudnnBackendDescriptorType_t type,
                                                        cudnnBackendAttributeName_t how_name,
                                                        cudnnBackendDescriptor_t how);
  absl::Status SetTensor(cudnnBackendDescriptor_t operation, cudnnBackendAttributeName_t name, Tensor tensor);
  // False: this proposal is not one to take.
  absl::StatusOr<bool> Take(cudnnHandle_t dnn, cudnnBackendDescriptor_t proposal, int64_t most_workspace);

  std::vector<std::unique_ptr<Descriptor>> owned_;
  std::vector<cudnnBackendDescriptor_t> tensors_, operations_;
  cudnnBackendDescriptor_t plan_ = nullptr;
  int64_t workspace_bytes_ = 0;
};

}  // namespace pipec::cuda
