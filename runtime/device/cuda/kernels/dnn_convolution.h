// A convolution, or one of its gradients, by cuDNN.
#pragma once

#include <driver_types.h>

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "runtime/device/operands/window.h"
#include "runtime/device/cuda/cuda_context.h"

namespace pipec::cuda {

// What slides over `places`, gives `windows` and has `weights`:
//   places (batch, groups * place_channels, in), windows (batch, groups * window_channels, out),
//   weights (groups * window_channels, place_channels, taps).
struct SlidingProduct {
  Windows axes;
  int64_t batch = 1, groups = 1, place_channels = 1, window_channels = 1;
  DType dtype = DType::kFloat32;
};

// Which of the three is computed from the two others: Conv, its gradients, and with the same three ConvTranspose
// and its.
enum class Computed { kWindows, kPlaces, kWeights };

class DnnConvolution {
 public:
  // Of a product none of whose dimensions is 0. Chooses an algorithm whose results repeat bit by bit; float32 is
  // multiplied as such, 16-bit floats are added in float32. Unimplemented if cuDNN has none for these types and
  // shapes.
  static absl::StatusOr<std::shared_ptr<const DnnConvolution>> Create(const KernelSpec& spec,
                                                                      const SlidingProduct& product,
                                                                      Computed computed,
                                                                      CudaContext& context);
  virtual ~DnnConvolution() = default;

  virtual int64_t workspace_bytes() const = 0;
  // `add`: to what the result holds. All addresses are aligned to 16 bytes, the workspace to 256. What is computed
  // is not read unless `add`, the others are not written.
  virtual absl::Status Run(cudaStream_t stream, void* places, void* weights, void* windows, bool add,
                           void* workspace) const = 0;
};

}  // namespace pipec::cuda
