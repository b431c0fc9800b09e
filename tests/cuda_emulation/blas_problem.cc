#include "tests/cuda_emulation/blas_problem.h"

#include <cmath>
#include <numbers>

#include "tests/cuda_emulation/elements.h"

namespace cuda_emulation {
namespace {

// Gelu(x) = x (1 + tanh(u)) / 2, u = sqrt(2 / pi) (x + 0.044715 x^3).
double GeluTanh(double x) { return std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)); }
double GeluSlope(double x) {
  const double t = GeluTanh(x);
  return (1 + t + x * (1 - t * t) * std::sqrt(2 / std::numbers::pi) * (1 + 3 * 0.044715 * x * x)) / 2;
}

}  // namespace

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
  if (description.epilogue != CUBLASLT_EPILOGUE_DEFAULT) {
    if (doubles) return "there are no epilogues of float64";
    if (d.batches > 1) return "the double knows no epilogues of batches";
  }
  if (description.has_matrix() && (description.matrix_lead % 8 != 0 || description.matrix_lead < d.rows))
    return "the auxiliary matrix wants a leading dimension that is a multiple of 8 and no less than D's rows";
  return "";
}

uint64_t ProblemOf(const Description& description, const Layout& a, const Layout& b, const Layout& c,
                   const Layout& d) {
  uint64_t hash =
      (uint64_t{description.epilogue} * 3 + description.transpose_a) * 3 + description.transpose_b;
  if (description.has_matrix()) hash = hash * 31 + static_cast<uint64_t>(description.matrix_lead);
  for (const Layout* layout : {&a, &b, &c, &d}) {
    for (int64_t part : {int64_t{layout->type}, layout->rows, layout->columns, layout->lead,
                         int64_t{layout->batches}, layout->step}) {
      hash = (hash ^ static_cast<uint64_t>(part)) * 0x9e3779b97f4a7c15u;
      hash ^= hash >> 29;
    }
  }
  return hash;
}

int64_t VectorLength(const Description& description, const Layout& d) {
  return description.epilogue == CUBLASLT_EPILOGUE_BGRADB ? d.columns : d.rows;
}

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
        if (description.adds_bias()) value += GetElement(d.type, description.vector, row);
        if (beta != 0) value += beta * GetElement(c.type, from_c, batch * c.step + row + column * c.lead);
        if (description.epilogue == CUBLASLT_EPILOGUE_GELU ||
            description.epilogue == CUBLASLT_EPILOGUE_GELU_BIAS) {
          value *= (1 + GeluTanh(value)) / 2;
        }
        if (description.has_matrix())
          value *= GeluSlope(GetElement(d.type, description.matrix, row + column * description.matrix_lead));
        PutElement(d.type, static_cast<std::byte*>(d_data), batch * d.step + row + column * d.lead, value);
      }
    }
  }
}

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

}  // namespace cuda_emulation
