// Doubles of cuDNN's convolutions: Y (N,K,out) from X (N,C,in) and the filter (K,C/groups,taps), and both
// gradients, added in float64. They refuse what NVIDIA's documents forbid: shapes that do not follow from one
// another, types that do not go together, a workspace that is too small, operands that are not aligned to 16 bytes.
// As on a GPU, float32 is rounded to 10 bits unless the description says FMA. The proposals of an algorithm begin
// with what a careful caller does not take: one that would not repeat, one that wants more memory than there is,
// one that is not supported.
#include <cmath>
#include <cstring>
#include <vector>

#include "tests/cuda_emulation/capture.h"
#include "tests/cuda_emulation/cudnn_objects.h"
#include "tests/cuda_emulation/elements.h"
#include "tests/cuda_emulation/transfer.h"

namespace cuda_emulation {
namespace {

constexpr int kChosen = 1;  // of all three enumerations: supported, and its results repeat
constexpr size_t kWorkspace = 1024;
static_assert(CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM == kChosen &&
              CUDNN_CONVOLUTION_BWD_DATA_ALGO_1 == kChosen && CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1 == kChosen);

struct Problem {
  DnnTensor x, w, y;
  DnnConvolution how;
};

Problem ProblemOf(cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w, cudnnConvolutionDescriptor_t how,
                  cudnnTensorDescriptor_t y) {
  return {DnnObject<DnnTensor>(x), DnnObject<DnnTensor>(w), DnnObject<DnnTensor>(y),
          DnnObject<DnnConvolution>(how)};
}

// What is wrong with it, in words; "" if nothing.
std::string Fault(const Problem& problem) {
  const auto& [x, w, y, how] = problem;
  if (how.rank == 0 || x.rank != how.rank + 2 || w.rank != x.rank || y.rank != x.rank)
    return "the operands have not the convolution's rank";
  if (x.type != w.type || x.type != y.type) return "the operands differ in type";
  if (how.compute != (x.type == CUDA_R_64F ? CUDA_R_64F : CUDA_R_32F))
    return "no algorithm computes in this type";
  if (how.mode != CUDNN_CROSS_CORRELATION) return "a mode that the double does not know";
  if (how.groups < 1 || x.dims[1] != w.dims[1] * how.groups || w.dims[0] % how.groups != 0)
    return "the channels do not fit the groups";
  if (y.dims[0] != x.dims[0] || y.dims[1] != w.dims[0]) return "Y has another batch or other channels";
  for (int i = 0; i < how.rank; ++i) {
    const int64_t room = x.dims[i + 2] + 2 * how.padding[i] - (w.dims[i + 2] - 1) * how.dilations[i] - 1;
    if (room < 0 || y.dims[i + 2] != room / how.strides[i] + 1)
      return "Y has not the shape of the convolution";
  }
  return "";
}

// f(element of X, of the filter, of Y) for every product that is added.
template <typename F>
void ForEachProduct(const Problem& problem, const F& f) {
  const auto& [x, w, y, how] = problem;
  // Two spatial axes are three, the first of one place.
  int64_t in[3] = {1, 1, 1}, taps[3] = {1, 1, 1}, out[3] = {1, 1, 1}, padding[3] = {}, strides[3] = {1, 1, 1},
          dilations[3] = {1, 1, 1};
  for (int i = 0; i < how.rank; ++i) {
    const int to = 3 - how.rank + i;
    in[to] = x.dims[i + 2], taps[to] = w.dims[i + 2], out[to] = y.dims[i + 2];
    padding[to] = how.padding[i], strides[to] = how.strides[i], dilations[to] = how.dilations[i];
  }
  const int64_t places = in[0] * in[1] * in[2], windows = out[0] * out[1] * out[2],
                tap_count = taps[0] * taps[1] * taps[2];
  const int64_t k_of_group = w.dims[0] / how.groups;
  for (int64_t n = 0; n < x.dims[0]; ++n) {
    for (int64_t k = 0; k < w.dims[0]; ++k) {
      for (int64_t c = 0; c < w.dims[1]; ++c) {
        const int64_t x_plane = (n * x.dims[1] + k / k_of_group * w.dims[1] + c) * places;
        const int64_t w_plane = (k * w.dims[1] + c) * tap_count, y_plane = (n * w.dims[0] + k) * windows;
        for (int64_t window = 0; window < windows; ++window) {
          const int64_t o[3] = {window / (out[1] * out[2]), window / out[2] % out[1], window % out[2]};
          for (int64_t tap = 0; tap < tap_count; ++tap) {
            const int64_t t[3] = {tap / (taps[1] * taps[2]), tap / taps[2] % taps[1], tap % taps[2]};
            int64_t place = 0;
            bool inside = true;
            for (int i = 0; i < 3; ++i) {
              const int64_t at = o[i] * strides[i] - padding[i] + t[i] * dilations[i];
              inside = inside && at >= 0 && at < in[i];
              place = place * in[i] + at;
            }
            if (inside) f(x_plane + place, w_plane + tap, y_plane + window);
          }
        }
      }
    }
  }
}

std::vector<double> ReadAll(const DnnTensor& tensor, const void* data, cudnnMathType_t math) {
  std::vector<double> values(tensor.elements());
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = GetElement(tensor.type, data, i);
    if (tensor.type == CUDA_R_32F && math != CUDNN_FMA_MATH) {
      int exponent;
      const double mantissa = std::frexp(values[i], &exponent);
      values[i] = std::ldexp(std::nearbyint(std::ldexp(mantissa, 11)), exponent - 11);
    }
  }
  return values;
}

double Factor(const Problem& problem, const void* value) { return GetElement(problem.how.compute, value, 0); }

// `result` = alpha * what add(values of the first operand, of the second, sums) adds up + beta * result.
template <typename Add>
cudaError_t Enqueue(Machine& machine, const char* name, cudnnHandle_t handle, const Problem& problem,
                    int algorithm, void* workspace, size_t workspace_bytes, const void* alpha,
                    const void* beta, const DnnTensor& first_type, const void* first,
                    const DnnTensor& second_type, const void* second, const DnnTensor& result_type,
                    void* result, const Add& add) {
  const auto refuse = [&](const std::string& why) {
    return machine.Refuse(cudaErrorInvalidValue, std::string(name) + ": " + why);
  };
  const auto& own = DnnObject<DnnHandle>(handle);
  CUstream_st* const stream = machine.StreamOf(own.stream);
  if (!stream) return refuse("on a stream that lives no more");
  if (own.device != CurrentDevice()) return refuse("the handle is another device's");
  if (const std::string fault = Fault(problem); !fault.empty()) return refuse(fault);
  if (algorithm != kChosen) return refuse("an algorithm that does not repeat or is not there");
  if (workspace_bytes < kWorkspace || workspace == nullptr) return refuse("the workspace is too small");
  for (const void* operand :
       {first, second, const_cast<const void*>(result), const_cast<const void*>(workspace)}) {
    if (reinterpret_cast<uintptr_t>(operand) % 16 != 0) {
      return machine.Refuse(cudaErrorMisalignedAddress,
                            std::string(name) + ": an operand is not aligned to 16 bytes");
    }
  }
  const double by = Factor(problem, alpha), keep = Factor(problem, beta);
  return Submit(machine, *stream, name, cudaGraphNodeTypeKernel,
                [=](const Operation& operation) -> std::optional<Failure> {
                  if (auto failure = CheckRange(operation, first, first_type.bytes(), Access::kRead))
                    return failure;
                  if (auto failure = CheckRange(operation, second, second_type.bytes(), Access::kRead))
                    return failure;
                  if (keep != 0) {
                    if (auto failure = CheckRange(operation, result, result_type.bytes(), Access::kRead))
                      return failure;
                  }
                  if (auto failure = CheckRange(operation, result, result_type.bytes(), Access::kWrite))
                    return failure;
                  if (auto failure = CheckRange(operation, workspace, workspace_bytes, Access::kWrite))
                    return failure;
                  std::memset(workspace, 0xff, workspace_bytes);  // nothing may lie there
                  std::vector<double> sums(result_type.elements());
                  add(ReadAll(first_type, first, problem.how.math),
                      ReadAll(second_type, second, problem.how.math), sums);
                  for (size_t i = 0; i < sums.size(); ++i) {
                    double value = by * sums[i];
                    if (keep != 0) value += keep * GetElement(result_type.type, result, i);
                    PutElement(result_type.type, result, i, value);
                  }
                  return std::nullopt;
                });
}

// Proposals of any of the three kinds.
template <typename Performance>
cudaError_t Propose(Machine& machine, const Problem& problem, const Performance& first, int wanted,
                    int* found, Performance* proposals) {
  if (const std::string fault = Fault(problem); !fault.empty())
    return machine.Refuse(cudaErrorInvalidValue, "cuDNN: " + fault);
  using Algorithm = decltype(Performance::algo);
  Performance all[4] = {first, first, first, first};
  all[0].algo = static_cast<Algorithm>(0), all[0].determinism = CUDNN_NON_DETERMINISTIC, all[0].memory = 0;
  all[1].algo = static_cast<Algorithm>(2), all[1].memory = size_t{1} << 40;
  all[2].algo = static_cast<Algorithm>(3), all[2].status = CUDNN_STATUS_NOT_SUPPORTED;
  all[3].algo = static_cast<Algorithm>(kChosen);
  *found = std::min(wanted, 4);
  for (int i = 0; i < *found; ++i) {
    all[i].time = static_cast<float>(i);
    proposals[i] = all[i];
  }
  return cudaSuccess;
}

template <typename Performance>
Performance FirstOf(const Problem& problem) {
  Performance first{};
  first.status = CUDNN_STATUS_SUCCESS;
  first.memory = kWorkspace;
  first.determinism = CUDNN_DETERMINISTIC;
  first.mathType = problem.how.math;
  return first;
}

cudaError_t Workspace(Machine& machine, const Problem& problem, int algorithm, size_t* bytes) {
  if (const std::string fault = Fault(problem); !fault.empty())
    return machine.Refuse(cudaErrorInvalidValue, "cuDNN: " + fault);
  *bytes = algorithm == 2 ? size_t{1} << 40 : kWorkspace;
  return algorithm == 3 ? cudaErrorNotSupported : cudaSuccess;
}

}  // namespace

extern "C" cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(
    cudnnHandle_t, const cudnnTensorDescriptor_t x, const cudnnFilterDescriptor_t w,
    const cudnnConvolutionDescriptor_t how, const cudnnTensorDescriptor_t y, const int wanted, int* found,
    cudnnConvolutionFwdAlgoPerf_t* proposals) {
  return DnnCall("cudnnGetConvolutionForwardAlgorithm_v7", [&](Machine& machine) {
    const Problem problem = ProblemOf(x, w, how, y);
    return Propose(machine, problem, FirstOf<cudnnConvolutionFwdAlgoPerf_t>(problem), wanted, found,
                   proposals);
  });
}
extern "C" cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t, const cudnnFilterDescriptor_t w, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t how, const cudnnTensorDescriptor_t dx, const int wanted, int* found,
    cudnnConvolutionBwdDataAlgoPerf_t* proposals) {
  return DnnCall("cudnnGetConvolutionBackwardDataAlgorithm_v7", [&](Machine& machine) {
    const Problem problem = ProblemOf(dx, w, how, dy);
    return Propose(machine, problem, FirstOf<cudnnConvolutionBwdDataAlgoPerf_t>(problem), wanted, found,
                   proposals);
  });
}
extern "C" cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t, const cudnnTensorDescriptor_t x, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t how, const cudnnFilterDescriptor_t dw, const int wanted, int* found,
    cudnnConvolutionBwdFilterAlgoPerf_t* proposals) {
  return DnnCall("cudnnGetConvolutionBackwardFilterAlgorithm_v7", [&](Machine& machine) {
    const Problem problem = ProblemOf(x, dw, how, dy);
    return Propose(machine, problem, FirstOf<cudnnConvolutionBwdFilterAlgoPerf_t>(problem), wanted, found,
                   proposals);
  });
}

extern "C" cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(
    cudnnHandle_t, const cudnnTensorDescriptor_t x, const cudnnFilterDescriptor_t w,
    const cudnnConvolutionDescriptor_t how, const cudnnTensorDescriptor_t y,
    cudnnConvolutionFwdAlgo_t algorithm, size_t* bytes) {
  return DnnCall("cudnnGetConvolutionForwardWorkspaceSize", [&](Machine& machine) {
    return Workspace(machine, ProblemOf(x, w, how, y), algorithm, bytes);
  });
}
extern "C" cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(
    cudnnHandle_t, const cudnnFilterDescriptor_t w, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t how, const cudnnTensorDescriptor_t dx,
    cudnnConvolutionBwdDataAlgo_t algorithm, size_t* bytes) {
  return DnnCall("cudnnGetConvolutionBackwardDataWorkspaceSize", [&](Machine& machine) {
    return Workspace(machine, ProblemOf(dx, w, how, dy), algorithm, bytes);
  });
}
extern "C" cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t, const cudnnTensorDescriptor_t x, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t how, const cudnnFilterDescriptor_t dw,
    cudnnConvolutionBwdFilterAlgo_t algorithm, size_t* bytes) {
  return DnnCall("cudnnGetConvolutionBackwardFilterWorkspaceSize", [&](Machine& machine) {
    return Workspace(machine, ProblemOf(x, dw, how, dy), algorithm, bytes);
  });
}

extern "C" cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void* alpha,
                                                 const cudnnTensorDescriptor_t x_type, const void* x,
                                                 const cudnnFilterDescriptor_t w_type, const void* w,
                                                 const cudnnConvolutionDescriptor_t how,
                                                 cudnnConvolutionFwdAlgo_t algorithm, void* workspace,
                                                 size_t workspace_bytes, const void* beta,
                                                 const cudnnTensorDescriptor_t y_type, void* y) {
  return DnnCall("cudnnConvolutionForward", [&](Machine& machine) {
    const Problem p = ProblemOf(x_type, w_type, how, y_type);
    return Enqueue(machine, "cudnnConvolutionForward", handle, p, algorithm, workspace, workspace_bytes,
                   alpha, beta, p.x, x, p.w, w, p.y, y, [p](const auto& xs, const auto& ws, auto& ys) {
                     ForEachProduct(p, [&](int64_t i, int64_t j, int64_t k) { ys[k] += xs[i] * ws[j]; });
                   });
  });
}
extern "C" cudnnStatus_t cudnnConvolutionBackwardData(
    cudnnHandle_t handle, const void* alpha, const cudnnFilterDescriptor_t w_type, const void* w,
    const cudnnTensorDescriptor_t dy_type, const void* dy, const cudnnConvolutionDescriptor_t how,
    cudnnConvolutionBwdDataAlgo_t algorithm, void* workspace, size_t workspace_bytes, const void* beta,
    const cudnnTensorDescriptor_t dx_type, void* dx) {
  return DnnCall("cudnnConvolutionBackwardData", [&](Machine& machine) {
    const Problem p = ProblemOf(dx_type, w_type, how, dy_type);
    return Enqueue(machine, "cudnnConvolutionBackwardData", handle, p, algorithm, workspace, workspace_bytes,
                   alpha, beta, p.w, w, p.y, dy, p.x, dx, [p](const auto& ws, const auto& dys, auto& dxs) {
                     ForEachProduct(p, [&](int64_t i, int64_t j, int64_t k) { dxs[i] += ws[j] * dys[k]; });
                   });
  });
}
extern "C" cudnnStatus_t cudnnConvolutionBackwardFilter(
    cudnnHandle_t handle, const void* alpha, const cudnnTensorDescriptor_t x_type, const void* x,
    const cudnnTensorDescriptor_t dy_type, const void* dy, const cudnnConvolutionDescriptor_t how,
    cudnnConvolutionBwdFilterAlgo_t algorithm, void* workspace, size_t workspace_bytes, const void* beta,
    const cudnnFilterDescriptor_t dw_type, void* dw) {
  return DnnCall("cudnnConvolutionBackwardFilter", [&](Machine& machine) {
    const Problem p = ProblemOf(x_type, dw_type, how, dy_type);
    return Enqueue(machine, "cudnnConvolutionBackwardFilter", handle, p, algorithm, workspace,
                   workspace_bytes, alpha, beta, p.x, x, p.y, dy, p.w, dw,
                   [p](const auto& xs, const auto& dys, auto& dws) {
                     ForEachProduct(p, [&](int64_t i, int64_t j, int64_t k) { dws[j] += xs[i] * dys[k]; });
                   });
  });
}

}  // namespace cuda_emulation
