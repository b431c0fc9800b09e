// A product as cuBLASLt describes it: column-major layouts, batches, transposition, C and D alike, the epilogues of a
// bias and of its gradient, of Gelu, which is its tanh form, and of that one's gradient. A vector has D's type and is
// as long as D's columns for a bias and BGRADA, as D's rows for BGRADB (cublasLt.h, cublasLtEpilogue_t). DGELU's
// auxiliary matrix has D's shape and type and a leading dimension of its own (cublasLtMatmulDescAttributes_t).
#pragma once

#include <cublasLt.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace cuda_emulation {

// A column-major matrix, once or many times.
struct Layout {
  cudaDataType_t type;
  int64_t rows, columns, lead;
  int32_t batches = 1;
  int64_t step = 0;
};

// Of an operation: what is set so far.
struct Description {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  int32_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N;
  uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void* vector = nullptr;
  const void* matrix = nullptr;
  int64_t matrix_lead = 0;

  bool adds_bias() const {
    return epilogue == CUBLASLT_EPILOGUE_BIAS || epilogue == CUBLASLT_EPILOGUE_GELU_BIAS;
  }
  bool has_vector() const {
    return adds_bias() || epilogue == CUBLASLT_EPILOGUE_BGRADA || epilogue == CUBLASLT_EPILOGUE_BGRADB;
  }
  bool has_matrix() const { return epilogue == CUBLASLT_EPILOGUE_DGELU; }
};

// What is wrong with the problem, in words; "" if nothing.
std::string Fault(const Description& description, const Layout& a, const Layout& b, const Layout& c,
                  const Layout& d);
// Equal for equal problems.
uint64_t ProblemOf(const Description& description, const Layout& a, const Layout& b, const Layout& c,
                   const Layout& d);

int64_t VectorLength(const Description& description, const Layout& d);
// Bytes from the first element of the first batch to the last of the last.
size_t Extent(const Layout& layout);

// D, with its epilogue.
void Multiply(const Description& description, double alpha, double beta, const void* a_data, const Layout& a,
              const void* b_data, const Layout& b, const void* c_data, const Layout& c, void* d_data,
              const Layout& d);
// The bias gradient, if that is the epilogue: op(A) or op(B) summed over what the product sums over.
void SumOperand(const Description& description, const void* a, const Layout& la, const void* b,
                const Layout& lb, const Layout& d);

}  // namespace cuda_emulation
