// Doubles of the calls of cuBLASLt that multiply matrices: column-major layouts, batches, transposition, C and D
// alike, the epilogues of a bias and of its gradient. They refuse what NVIDIA's documents forbid: shapes and
// leading dimensions that do not fit, an algorithm of another problem, addresses that are less aligned than it was
// chosen for, a workspace that is too small or not aligned to 256 bytes, an epilogue of float64 or without a
// vector. A vector has D's type; its length is that of D's columns for a bias and for BGRADA, that of D's rows for
// BGRADB (cublasLt.h, cublasLtEpilogue_t).
#include <cublasLt.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "tests/cuda_emulation/call.h"
#include "tests/cuda_emulation/capture.h"
#include "tests/cuda_emulation/elements.h"
#include "tests/cuda_emulation/transfer.h"

namespace cuda_emulation {
namespace {

constexpr size_t kWorkspace = 4096;  // what every algorithm asks for

struct Layout {
  cudaDataType_t type;
  int64_t rows, columns, lead;
  int32_t batches = 1;
  int64_t step = 0;
};
struct Description {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  int32_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N;
  uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void* vector = nullptr;

  bool has_vector() const { return epilogue != CUBLASLT_EPILOGUE_DEFAULT; }
};
struct Preference {
  uint64_t workspace = 0;
  uint32_t alignment[4] = {256, 256, 256, 256};  // of A, B, C, D
};
// What an algorithm remembers of the problem that it is for.
struct Algorithm {
  uint64_t problem;
  uint32_t alignment[4];
  uintptr_t vector_alignment;
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

// What is wrong with the problem, in words; "" if nothing.
std::string Fault(const Description& description, const Layout& a, const Layout& b, const Layout& c,
                  const Layout& d) {
  const bool ta = description.transpose_a != CUBLAS_OP_N, tb = description.transpose_b != CUBLAS_OP_N;
  const int64_t m = ta ? a.columns : a.rows, k = ta ? a.rows : a.columns, n = tb ? b.rows : b.columns;
  if ((tb ? b.columns : b.rows) != k) return "the inner dimensions of A and B differ";
  if (d.rows != m || d.columns != n) return "D has not the shape of the product";
  if (c.rows != d.rows || c.columns != d.columns || c.type != d.type) return "C is not of D's shape and type";
  for (const Layout* layout : {&a, &b, &c, &d}) {
    if (layout->lead < layout->rows) return "a leading dimension is less than the rows";
    if (layout->batches != d.batches) return "the batch counts differ";
  }
  if (d.batches > 1 && d.step < d.lead * d.columns) return "the batches of D overlap";
  if (a.type != b.type) return "A and B differ in type";
  const bool doubles = a.type == CUDA_R_64F;
  if (doubles != (d.type == CUDA_R_64F) || (d.type != a.type && d.type != CUDA_R_32F) ||
      description.compute != (doubles ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F) ||
      description.scale != (doubles ? CUDA_R_64F : CUDA_R_32F) || ElementBytes(a.type) == 0) {
    return "no kernel computes with these types";
  }
  if (description.has_vector()) {
    if (doubles) return "there are no epilogues of float64";
    if (d.batches > 1) return "the double knows no epilogues of batches";
  }
  return "";
}

// What an address is aligned to, as far as anybody asks. None stands for a good one.
uintptr_t AlignmentOf(const void* address) {
  const auto bits = reinterpret_cast<uintptr_t>(address);
  return bits == 0 ? 16 : std::min<uintptr_t>(bits & (~bits + 1), 16);
}

int64_t VectorLength(const Description& description, const Layout& d) {
  return description.epilogue == CUBLASLT_EPILOGUE_BGRADB ? d.columns : d.rows;
}

uint64_t ProblemOf(const Description& description, const Layout& a, const Layout& b, const Layout& c,
                   const Layout& d) {
  uint64_t hash =
      (uint64_t{description.epilogue} * 3 + description.transpose_a) * 3 + description.transpose_b;
  for (const Layout* layout : {&a, &b, &c, &d}) {
    for (int64_t part : {int64_t{layout->type}, layout->rows, layout->columns, layout->lead,
                         int64_t{layout->batches}, layout->step}) {
      hash = (hash ^ static_cast<uint64_t>(part)) * 0x9e3779b97f4a7c15u;
      hash ^= hash >> 29;
    }
  }
  return hash;
}

// Bytes from the first element of the first batch to the last of the last.
size_t Extent(const Layout& layout) {
  return ((layout.batches - 1) * layout.step + (layout.columns - 1) * layout.lead + layout.rows) *
         ElementBytes(layout.type);
}

void Multiply(const Description& description, double alpha, double beta, const void* a_data, const Layout& a,
              const void* b_data, const Layout& b, const void* c_data, const Layout& c, void* d_data,
              const Layout& d) {
  const auto* const from_a = static_cast<const std::byte*>(a_data);
  const auto* const from_b = static_cast<const std::byte*>(b_data);
  const auto* const from_c = static_cast<const std::byte*>(c_data);
  const bool ta = description.transpose_a != CUBLAS_OP_N, tb = description.transpose_b != CUBLAS_OP_N;
  const int64_t depth = ta ? a.rows : a.columns;
  for (int64_t batch = 0; batch < d.batches; ++batch) {
    for (int64_t column = 0; column < d.columns; ++column) {
      for (int64_t row = 0; row < d.rows; ++row) {
        double sum = 0;
        for (int64_t i = 0; i < depth; ++i) {
          sum +=
              GetElement(a.type, from_a, batch * a.step + (ta ? i + row * a.lead : row + i * a.lead)) *
              GetElement(b.type, from_b, batch * b.step + (tb ? column + i * b.lead : i + column * b.lead));
        }
        double value = alpha * sum;
        if (description.epilogue == CUBLASLT_EPILOGUE_BIAS)
          value += GetElement(d.type, description.vector, row);
        if (beta != 0) value += beta * GetElement(c.type, from_c, batch * c.step + row + column * c.lead);
        PutElement(d.type, static_cast<std::byte*>(d_data), batch * d.step + row + column * d.lead, value);
      }
    }
  }
}

// The bias gradient: op(A) or op(B) summed over what the product sums over.
void SumOperand(const Description& description, const void* a, const Layout& la, const void* b,
                const Layout& lb, const Layout& d) {
  const bool of_a = description.epilogue == CUBLASLT_EPILOGUE_BGRADA;
  if (!of_a && description.epilogue != CUBLASLT_EPILOGUE_BGRADB) return;
  const Layout& from = of_a ? la : lb;
  // Whether the sum goes over columns of what lies there.
  const bool columns = of_a ? description.transpose_a == CUBLAS_OP_N : description.transpose_b != CUBLAS_OP_N;
  for (int64_t i = 0; i < VectorLength(description, d); ++i) {
    double sum = 0;
    for (int64_t k = 0; k < (columns ? from.columns : from.rows); ++k)
      sum += GetElement(from.type, of_a ? a : b, columns ? i + k * from.lead : k + i * from.lead);
    PutElement(d.type, description.vector, i, sum);
  }
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
  return StatusOf(ReleaseCall(name, [&](Machine&, bool) {
    delete static_cast<T*>(handle);
    return cudaSuccess;
  }));
}

}  // namespace

extern "C" cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  return BlasCall("cublasLtCreate", [&](Machine&) {
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
  return BlasCall("cublasLtMatmulDescCreate", [&](Machine&) {
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
      if (asked != CUBLASLT_EPILOGUE_DEFAULT && asked != CUBLASLT_EPILOGUE_BIAS &&
          asked != CUBLASLT_EPILOGUE_BGRADA && asked != CUBLASLT_EPILOGUE_BGRADB) {
        return machine.Refuse(cudaErrorInvalidValue, "an epilogue that the double does not know");
      }
      description.epilogue = asked;
      return cudaSuccess;
    }
    if (attribute == CUBLASLT_MATMUL_DESC_BIAS_POINTER) {
      return SetBytes(&description.vector, sizeof description.vector, value, bytes, machine);
    }
    return machine.Refuse(cudaErrorInvalidValue, "an attribute of a product that the double does not know");
  });
}

extern "C" cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* made, cudaDataType type,
                                                     uint64_t rows, uint64_t columns, int64_t lead) {
  return BlasCall("cublasLtMatrixLayoutCreate", [&](Machine&) {
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
  return BlasCall("cublasLtMatmulPreferenceCreate", [&](Machine&) {
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
    *found = wanted > 0 ? 1 : 0;
    if (wanted <= 0) return cudaSuccess;
    const Preference& asked = As<Preference>(preference);
    Algorithm algorithm{ProblemOf(As<Description>(description), la, lb, lc, ld),
                        {},
                        AlignmentOf(As<Description>(description).vector)};
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
                      const Access access =
                          description.epilogue == CUBLASLT_EPILOGUE_BIAS ? Access::kRead : Access::kWrite;
                      const size_t length = VectorLength(description, ld) * ElementBytes(ld.type);
                      if (auto failure = CheckRange(operation, description.vector, length, access))
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
