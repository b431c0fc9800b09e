// What the doubles of cuDNN's backend API keep of a graph of operations, and how they compute it.
#pragma once

#include <cudnn.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace cuda_emulation {

struct DnnGraphTensor {
  int64_t number = 0;
  cudnnDataType_t type{};
  int64_t alignment = 0;
  std::vector<int64_t> dims, steps;
  bool is_virtual = false, by_value = false;

  int64_t elements() const;
  size_t element_bytes() const;  // 0: a type that the doubles do not know
  size_t bytes() const;          // from the first element to the last
  // Where the element of this place in row-major order lies, in elements.
  int64_t At(int64_t place) const;
  bool operator==(const DnnGraphTensor&) const = default;
};

struct DnnOperation {
  enum class Kind { kProduct, kElements, kReduction, kReshape } kind{};
  int mode = 0;  // cudnnPointwiseMode_t, cudnnReduceTensorOp_t
  int64_t axis = -1;
  std::vector<DnnGraphTensor> reads;
  DnnGraphTensor writes;
};

// How many operands the operation has; 0: one that the doubles do not know.
size_t DnnOperandsOf(cudnnPointwiseMode_t mode);

// What is wrong with an operation or a graph of them, in words; "" if nothing.
std::string FaultOf(const DnnGraphTensor& tensor);
std::string FaultOf(const DnnOperation& operation);
std::string FaultOf(const std::vector<DnnOperation>& graph);
// Whether an engine takes it: products of rows of 16-bit floats, 16 bytes and their multiples each.
bool IsSupported(const std::vector<DnnOperation>& graph);

// The elements of a tensor in row-major order.
using DnnValues = std::map<int64_t, std::vector<double>>;
// Adds what operations write, rounded to its type. Sums are of float64.
void Compute(const std::vector<DnnOperation>& graph, DnnValues& values);
// From and to memory.
std::vector<double> ReadValues(const DnnGraphTensor& tensor, const void* data);
void WriteValues(const DnnGraphTensor& tensor, const std::vector<double>& values, void* data);

}  // namespace cuda_emulation
