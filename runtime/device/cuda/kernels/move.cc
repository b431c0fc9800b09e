// Transpose, Expand, Tile, DepthToSpace, SpaceToDepth, Slice, SliceGrad, Concat, Split, Identity, Reshape, Flatten,
// Squeeze, Unsqueeze: elements that only move.
#include "runtime/device/operands/move.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cuda/cuda_status.h"
#include "runtime/device/cuda/kernels/make_kernel.h"
#include "runtime/device/cuda/kernels/register.h"
#include "runtime/device/cuda/kernels/strided_copy.h"
#include "runtime/device/operands/check.h"

namespace pipec::cuda {
namespace {

template <absl::StatusOr<StridedMove> (*kMoveOf)(const KernelSpec&)>
absl::StatusOr<std::unique_ptr<Kernel>> PrepareMove(const KernelSpec& spec, CudaContext&) {
  ASSIGN_OR_RETURN(const StridedMove move, kMoveOf(spec));
  ASSIGN_OR_RETURN(const StridedCopy copy, StridedCopy::Of(spec, spec.inputs[0].type.dtype, move));
  return MakeKernel(0, [copy](cudaStream_t stream, const KernelArguments& arguments) {
    return copy.Run(stream, arguments.inputs[0], arguments.outputs[0]);
  });
}

// A view may have been given the place of what it is a view of.
template <absl::Status (*kCheck)(const KernelSpec&)>
absl::StatusOr<std::unique_ptr<Kernel>> PrepareView(const KernelSpec& spec, CudaContext&) {
  RETURN_IF_ERROR(kCheck(spec));
  const int64_t bytes = spec.inputs[0].type.bytes();
  return MakeKernel(0, [bytes](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
    if (bytes == 0 || arguments.inputs[0] == arguments.outputs[0]) return absl::OkStatus();
    RETURN_IF_CUDA_ERROR(
        cudaMemcpyAsync(arguments.outputs[0], arguments.inputs[0], bytes, cudaMemcpyDeviceToDevice, stream));
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareSlice(const KernelSpec& spec, CudaContext&) {
  ASSIGN_OR_RETURN(const SliceOperands operands, SliceOperands::Of(spec));
  if (!operands.known()) {
    return absl::UnimplementedError(
        absl::StrCat("node '", spec.name, "' (Slice): the CUDA device needs bounds that are known at load"));
  }
  ASSIGN_OR_RETURN(const StridedMove move, operands.Place(operands.constants()));
  ASSIGN_OR_RETURN(const StridedCopy copy, StridedCopy::Of(spec, spec.inputs[0].type.dtype, move));
  return MakeKernel(0, [copy](cudaStream_t stream, const KernelArguments& arguments) {
    return copy.Run(stream, arguments.inputs[0], arguments.outputs[0]);
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareSliceGrad(const KernelSpec& spec, CudaContext&) {
  ASSIGN_OR_RETURN(const StridedMove move, SliceGradMove(spec));
  ASSIGN_OR_RETURN(const StridedCopy copy, StridedCopy::Of(spec, spec.inputs[0].type.dtype, move));
  const int64_t bytes = spec.outputs[0].type.bytes();
  return MakeKernel(0, [copy, bytes](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
    if (bytes > 0) RETURN_IF_CUDA_ERROR(cudaMemsetAsync(arguments.outputs[0], 0, bytes, stream));
    return copy.Run(stream, arguments.inputs[0], arguments.outputs[0]);
  });
}

absl::StatusOr<std::vector<StridedCopy>> CopiesOf(const KernelSpec& spec, DType dtype,
                                                  const std::vector<StridedMove>& moves) {
  std::vector<StridedCopy> copies;
  for (const StridedMove& move : moves) {
    ASSIGN_OR_RETURN(const StridedCopy copy, StridedCopy::Of(spec, dtype, move));
    copies.push_back(copy);
  }
  return copies;
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareConcat(const KernelSpec& spec, CudaContext&) {
  ASSIGN_OR_RETURN(const std::vector<StridedMove> moves, ConcatMoves(spec));
  ASSIGN_OR_RETURN(std::vector<StridedCopy> copies, CopiesOf(spec, spec.outputs[0].type.dtype, moves));
  return MakeKernel(
      0, [copies = std::move(copies)](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
        for (size_t k = 0; k < copies.size(); ++k)
          RETURN_IF_ERROR(copies[k].Run(stream, arguments.inputs[k], arguments.outputs[0]));
        return absl::OkStatus();
      });
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareSplit(const KernelSpec& spec, CudaContext&) {
  ASSIGN_OR_RETURN(const std::vector<StridedMove> moves, SplitMoves(spec));
  ASSIGN_OR_RETURN(std::vector<StridedCopy> copies, CopiesOf(spec, spec.inputs[0].type.dtype, moves));
  return MakeKernel(
      0, [copies = std::move(copies)](cudaStream_t stream, const KernelArguments& arguments) -> absl::Status {
        for (size_t k = 0; k < copies.size(); ++k) {
          if (arguments.outputs[k] == nullptr) continue;  // nobody reads this piece
          RETURN_IF_ERROR(copies[k].Run(stream, arguments.inputs[0], arguments.outputs[k]));
        }
        return absl::OkStatus();
      });
}

}  // namespace

void RegisterMoveKernels(KernelRegistry& registry) {
  registry.Add("Concat", "", PrepareConcat);
  registry.Add("DepthToSpace", "", PrepareMove<DepthToSpaceMove>);
  registry.Add("Expand", "", PrepareMove<ExpandMove>);
  registry.Add("Flatten", "", PrepareView<CheckFlatten>);
  registry.Add("Identity", "", PrepareView<CheckIdentity>);
  registry.Add("Reshape", "", PrepareView<CheckReshape>);
  registry.Add("Slice", "", PrepareSlice);
  registry.Add("SliceGrad", kPipecDomain, PrepareSliceGrad);
  registry.Add("SpaceToDepth", "", PrepareMove<SpaceToDepthMove>);
  registry.Add("Split", "", PrepareSplit);
  registry.Add("Squeeze", "", PrepareView<CheckSqueeze>);
  registry.Add("Tile", "", PrepareMove<TileMove>);
  registry.Add("Transpose", "", PrepareMove<TransposeMove>);
  registry.Add("Unsqueeze", "", PrepareView<CheckUnsqueeze>);
}

}  // namespace pipec::cuda
