// Doubles of the calls of cuBLASLt that multiply matrices (blas_problem.h). They refuse what NVIDIA's documents forbid:
// what a problem may not be, an algorithm of another problem, addresses that are less aligned than it was chosen for, a
// workspace that is too small or not aligned to 256 bytes, an epilogue without its operand.
#include <cublasLt.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "tests/cuda_emulation/blas_problem.h"
#include "tests/cuda_emulation/call.h"
#include "tests/cuda_emulation/capture.h"
#include "tests/cuda_emulation/elements.h"
#include "tests/cuda_emulation/transfer.h"

namespace cuda_emulation {
namespace {

constexpr size_t kWorkspace = 4096;  // what every algorithm asks for

struct Preference {
  uint64_t workspace = 0;
  uint32_t alignment[4] = {256, 256, 256, 256};  // of A, B, C, D
};
// What an algorithm remembers of the problem that it is for.
struct Algorithm {
  uint64_t problem;
  uint32_t alignment[4];
  uintptr_t vector_alignment, matrix_alignment;
};
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));

template <typename T>
T& As(const void* handle) {
  return *static_cast<T*>(const_cast<void*>(handle));
}

template <typename T>
T Load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// What an address is aligned to, as far as anybody asks. None stands for a good one.
uintptr_t AlignmentOf(const void* address) {
  const auto bits = reinterpret_cast<uintptr_t>(address);
  return bits == 0 ? 16 : std::min<uintptr_t>(bits & (~bits + 1), 16);
}

cublasStatus_t StatusOf(cudaError_t error) {
  if (error == cudaSuccess) return CUBLAS_STATUS_SUCCESS;
  return error == cudaErrorInvalidValue || error == cudaErrorInvalidResourceHandle
             ? CUBLAS_STATUS_INVALID_VALUE
             : CUBLAS_STATUS_EXECUTION_FAILED;
}

template <typename Body>
cublasStatus_t BlasCall(const char* name, const Body& body) {
  return StatusOf(Call(name, [&](Machine& machine, auto&) { return body(machine); }));
}

cudaError_t SetBytes(void* to, size_t room, const void* from, size_t bytes, Machine& machine) {
  if (bytes != room)
    return machine.Refuse(cudaErrorInvalidValue, "an attribute of cuBLASLt has another size");
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}

template <typename T>
cublasStatus_t Destroy(const char* name, void* handle) {
  return StatusOf(ReleaseCall(name, [&](Machine& machine, bool) {
    machine.blas_objects -= handle != nullptr;
    delete static_cast<T*>(handle);
    return cudaSuccess;
  }));
}

}  // namespace

extern "C" cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  return BlasCall("cublasLtCreate", [&](Machine& machine) {
    ++machine.blas_objects;
    *handle = reinterpret_cast<cublasLtHandle_t>(new int(0));
    return cudaSuccess;
  });
}
extern "C" cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  return Destroy<int>("cublasLtDestroy", handle);
}
extern "C" const char* cublasLtGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    default:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
  }
}

extern "C" cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* made, cublasComputeType_t compute,
                                                   cudaDataType_t scale) {
  return BlasCall("cublasLtMatmulDescCreate", [&](Machine& machine) {
    ++machine.blas_objects;
    *made = reinterpret_cast<cublasLtMatmulDesc_t>(new Description{compute, scale});
    return cudaSuccess;
  });
}
extern "C" cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t handle) {
  return Destroy<Description>("cublasLtMatmulDescDestroy", handle);
}
extern "C" cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t handle,
                                                         cublasLtMatmulDescAttributes_t attribute,
                                                         const void* value, size_t bytes) {
  return BlasCall("cublasLtMatmulDescSetAttribute", [&](Machine& machine) {
    auto& description = As<Description>(handle);
    if (attribute == CUBLASLT_MATMUL_DESC_TRANSA) {
      return SetBytes(&description.transpose_a, sizeof(int32_t), value, bytes, machine);
    }
    if (attribute == CUBLASLT_MATMUL_DESC_TRANSB) {
      return SetBytes(&description.transpose_b, sizeof(int32_t), value, bytes, machine);
    }
    if (attribute == CUBLASLT_MATMUL_DESC_EPILOGUE) {
      uint32_t asked = 0;
      const cudaError_t error = SetBytes(&asked, sizeof asked, value, bytes, machine);
      if (error != cudaSuccess) return error;
      Description made{};
      made.epilogue = asked;
      if (asked != CUBLASLT_EPILOGUE_DEFAULT && asked != CUBLASLT_EPILOGUE_GELU && !made.has_vector() &&
          !made.has_matrix()) {
        return machine.Refuse(cudaErrorInvalidValue, "an epilogue that the double does not know");
      }
      description.epilogue = asked;
      return cudaSuccess;
    }
    if (attribute == CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER) {
      return SetBytes(&description.matrix, sizeof description.matrix, value, bytes, machine);
    }
    if (attribute == CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD) {
      return SetBytes(&description.matrix_lead, sizeof description.matrix_lead, value, bytes, machine);
    }
    if (attribute == CUBLASLT_MATMUL_DESC_BIAS_POINTER) {
      return SetBytes(&description.vector, sizeof description.vector, value, bytes, machine);
    }
    return machine.Refuse(cudaErrorInvalidValue, "an attribute of a product that the double does not know");
  });
}

extern "C" cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* made, cudaDataType type,
                                                     uint64_t rows, uint64_t columns, int64_t lead) {
  return BlasCall("cublasLtMatrixLayoutCreate", [&](Machine& machine) {
    ++machine.blas_objects;
    *made = reinterpret_cast<cublasLtMatrixLayout_t>(
        new Layout{type, static_cast<int64_t>(rows), static_cast<int64_t>(columns), lead});
    return cudaSuccess;
  });
}
extern "C" cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t handle) {
  return Destroy<Layout>("cublasLtMatrixLayoutDestroy", handle);
}
extern "C" cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t handle,
                                                           cublasLtMatrixLayoutAttribute_t attribute,
                                                           const void* value, size_t bytes) {
  return BlasCall("cublasLtMatrixLayoutSetAttribute", [&](Machine& machine) {
    auto& layout = As<Layout>(handle);
    if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) {
      return SetBytes(&layout.batches, sizeof layout.batches, value, bytes, machine);
    }
    if (attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET) {
      return SetBytes(&layout.step, sizeof layout.step, value, bytes, machine);
    }
    return machine.Refuse(cudaErrorInvalidValue, "an attribute of a layout that the double does not know");
  });
}

extern "C" cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* made) {
  return BlasCall("cublasLtMatmulPreferenceCreate", [&](Machine& machine) {
    ++machine.blas_objects;
    *made = reinterpret_cast<cublasLtMatmulPreference_t>(new Preference);
    return cudaSuccess;
  });
}
extern "C" cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t handle) {
  return Destroy<Preference>("cublasLtMatmulPreferenceDestroy", handle);
}
extern "C" cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t handle,
                                                               cublasLtMatmulPreferenceAttributes_t attribute,
                                                               const void* value, size_t bytes) {
  return BlasCall("cublasLtMatmulPreferenceSetAttribute", [&](Machine& machine) {
    auto& preference = As<Preference>(handle);
    if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) {
      return SetBytes(&preference.workspace, sizeof preference.workspace, value, bytes, machine);
    }
    const int operand = attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES;
    if (operand < 0 || operand > 3) {
      return machine.Refuse(cudaErrorInvalidValue,
                            "an attribute of a preference that the double does not know");
    }
    return SetBytes(&preference.alignment[operand], sizeof(uint32_t), value, bytes, machine);
  });
}

extern "C" cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t description,
                                                         cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                                         cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                                         cublasLtMatmulPreference_t preference, int wanted,
                                                         cublasLtMatmulHeuristicResult_t results[],
                                                         int* found) {
  return BlasCall("cublasLtMatmulAlgoGetHeuristic", [&](Machine& machine) {
    const Layout &la = As<Layout>(a), &lb = As<Layout>(b), &lc = As<Layout>(c), &ld = As<Layout>(d);
    const std::string fault = Fault(As<Description>(description), la, lb, lc, ld);
    if (!fault.empty())
      return machine.Refuse(cudaErrorInvalidValue, "cublasLtMatmulAlgoGetHeuristic: " + fault);
    const Preference& asked = As<Preference>(preference);
    const bool narrow = std::any_of(std::begin(asked.alignment), std::end(asked.alignment),
                                    [](uint32_t bytes) { return bytes < 16; });
    const bool none = machine.epilogues_want_alignment && narrow &&
                      As<Description>(description).epilogue != CUBLASLT_EPILOGUE_DEFAULT;
    *found = wanted > 0 && !none ? 1 : 0;
    if (*found == 0) return cudaSuccess;
    Algorithm algorithm{ProblemOf(As<Description>(description), la, lb, lc, ld),
                        {},
                        AlignmentOf(As<Description>(description).vector),
                        AlignmentOf(As<Description>(description).matrix)};
    std::memcpy(algorithm.alignment, asked.alignment, sizeof asked.alignment);
    results[0] = {};
    std::memcpy(&results[0].algo, &algorithm, sizeof algorithm);
    results[0].workspaceSize = asked.workspace < kWorkspace ? 0 : kWorkspace;
    results[0].state = CUBLAS_STATUS_SUCCESS;
    return cudaSuccess;
  });
}

extern "C" cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t description_handle,
                                         const void* alpha, const void* a, cublasLtMatrixLayout_t a_layout,
                                         const void* b, cublasLtMatrixLayout_t b_layout, const void* beta,
                                         const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                                         cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algo,
                                         void* workspace, size_t workspace_bytes, cudaStream_t handle) {
  return BlasCall("cublasLtMatmul", [&](Machine& machine) {
    const auto refuse = [&](const std::string& why) {
      return machine.Refuse(cudaErrorInvalidValue, "cublasLtMatmul: " + why);
    };
    CUstream_st* const stream = machine.StreamOf(handle);
    if (!stream)
      return machine.Refuse(cudaErrorInvalidResourceHandle, "cublasLtMatmul on a stream that lives no more");
    const auto description = As<Description>(description_handle);
    const Layout la = As<Layout>(a_layout), lb = As<Layout>(b_layout), lc = As<Layout>(c_layout),
                 ld = As<Layout>(d_layout);
    if (const std::string fault = Fault(description, la, lb, lc, ld); !fault.empty()) return refuse(fault);
    if (algo == nullptr) return refuse("the algorithm must be chosen beforehand");
    const auto algorithm = Load<Algorithm>(reinterpret_cast<const std::byte*>(algo));
    if (algorithm.problem != ProblemOf(description, la, lb, lc, ld))
      return refuse("the algorithm is another problem's");
    const void* const operands[] = {a, b, c, d};
    for (int k = 0; k < 4; ++k) {
      if (reinterpret_cast<uintptr_t>(operands[k]) % algorithm.alignment[k] != 0) {
        return refuse(std::string("operand ") + "ABCD"[k] +
                      " is less aligned than the algorithm was chosen for");
      }
    }
    if (description.has_vector()) {
      if (description.vector == nullptr) return refuse("the epilogue has no vector");
      if (AlignmentOf(description.vector) < algorithm.vector_alignment)
        return refuse("the epilogue's vector is less aligned than the algorithm was chosen for");
    }
    if (description.has_matrix()) {
      if (description.matrix == nullptr) return refuse("the epilogue has no auxiliary matrix");
      if (AlignmentOf(description.matrix) < algorithm.matrix_alignment)
        return refuse("the auxiliary matrix is less aligned than the algorithm was chosen for");
    }
    if (workspace_bytes > 0 && reinterpret_cast<uintptr_t>(workspace) % 256 != 0) {
      return refuse("the workspace is not aligned to 256 bytes");
    }
    if (c == d && (lc.lead != ld.lead || lc.step != ld.step))
      return refuse("C lies where D lies, in another layout");
    const auto factor = [&](const void* value) {
      return GetElement(description.scale, static_cast<const std::byte*>(value), 0);
    };
    const double alpha_value = factor(alpha), beta_value = factor(beta);
    return Submit(machine, *stream, "cublasLtMatmul", cudaGraphNodeTypeKernel,
                  [=](const Operation& operation) -> std::optional<Failure> {
                    if (auto failure = CheckRange(operation, a, Extent(la), Access::kRead)) return failure;
                    if (auto failure = CheckRange(operation, b, Extent(lb), Access::kRead)) return failure;
                    if (beta_value != 0) {
                      if (auto failure = CheckRange(operation, c, Extent(lc), Access::kRead)) return failure;
                    }
                    if (auto failure = CheckRange(operation, d, Extent(ld), Access::kWrite)) return failure;
                    if (description.has_vector()) {
                      const Access access = description.adds_bias() ? Access::kRead : Access::kWrite;
                      const size_t length = VectorLength(description, ld) * ElementBytes(ld.type);
                      if (auto failure = CheckRange(operation, description.vector, length, access))
                        return failure;
                    }
                    if (description.has_matrix()) {
                      Layout matrix = ld;
                      matrix.lead = description.matrix_lead;
                      if (auto failure = CheckRange(operation, description.matrix, Extent(matrix), Access::kRead))
                        return failure;
                    }
                    if (workspace_bytes > 0) {
                      if (auto failure = CheckRange(operation, workspace, workspace_bytes, Access::kWrite))
                        return failure;
                    }
                    SumOperand(description, a, la, b, lb, ld);
                    Multiply(description, alpha_value, beta_value, a, la, b, lb, c, lc, d, ld);
                    return std::nullopt;
                  });
  });
}

}  // namespace cuda_emulation
