#include "tests/cuda_emulation/cudnn_graph.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "tests/cuda_emulation/cudnn_objects.h"
#include "tests/cuda_emulation/elements.h"

namespace cuda_emulation {
namespace {

using Dims = std::vector<int64_t>;

// The place of `place` of `dims` in `own`, which broadcasts to them.
int64_t Broadcast(const Dims& dims, const Dims& own, int64_t place) {
  int64_t at = 0, step = 1;
  for (size_t i = dims.size(); i-- > 0; place /= dims[i]) {
    if (own[i] != 1) at += place % dims[i] * step;
    step *= own[i];
  }
  return at;
}

bool Broadcasts(const Dims& own, const Dims& dims) {
  if (own.size() != dims.size()) return false;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (own[i] != 1 && own[i] != dims[i]) return false;
  }
  return true;
}

bool IsNumber(cudnnDataType_t type) { return type != CUDNN_DATA_BOOLEAN; }

double Rounded(cudnnDataType_t type, double value) {
  if (type == CUDNN_DATA_BOOLEAN) return value != 0;
  if (type == CUDNN_DATA_INT32) return std::trunc(value);
  double rounded = 0;
  PutElement(DnnTypeOf(type), &rounded, 0, value);
  return GetElement(DnnTypeOf(type), &rounded, 0);
}

double Apply(int mode, double x, double b, double t) {
  switch (mode) {
    case CUDNN_POINTWISE_ADD:
      return x + b;
    case CUDNN_POINTWISE_SUB:
      return x - b;
    case CUDNN_POINTWISE_MUL:
      return x * b;
    case CUDNN_POINTWISE_DIV:
      return x / b;
    case CUDNN_POINTWISE_EXP:
      return std::exp(x);
    case CUDNN_POINTWISE_LOG:
      return std::log(x);
    case CUDNN_POINTWISE_CMP_GE:
      return x >= b;
    default:  // CUDNN_POINTWISE_BINARY_SELECT
      return t != 0 ? x : b;
  }
}

void Multiply(const DnnOperation& o, const DnnValues& values, std::vector<double>& c) {
  const DnnGraphTensor &a_type = o.reads[0], &b_type = o.reads[1];
  const std::vector<double>&a = values.at(a_type.number), &b = values.at(b_type.number);
  const size_t rank = o.writes.dims.size();
  const int64_t rows = o.writes.dims[rank - 2], columns = o.writes.dims[rank - 1],
                depth = a_type.dims[rank - 1];
  const auto heads = [rank](const DnnGraphTensor& tensor) {
    return Dims(tensor.dims.begin(), tensor.dims.begin() + rank - 2);
  };
  for (size_t place = 0; place < c.size(); ++place) {
    const int64_t head = place / (rows * columns), row = place / columns % rows, column = place % columns;
    const double* const from_a = &a[(Broadcast(heads(o.writes), heads(a_type), head) * rows + row) * depth];
    const double* const from_b =
        &b[Broadcast(heads(o.writes), heads(b_type), head) * depth * columns + column];
    for (int64_t i = 0; i < depth; ++i) c[place] += from_a[i] * from_b[i * columns];
  }
}

void Reduce(const DnnOperation& o, const DnnValues& values, std::vector<double>& y) {
  const std::vector<double>& x = values.at(o.reads[0].number);
  const bool largest = o.mode == CUDNN_REDUCE_TENSOR_MAX;
  if (largest) std::fill(y.begin(), y.end(), -std::numeric_limits<double>::infinity());
  for (size_t place = 0; place < x.size(); ++place) {
    double& into = y[Broadcast(o.reads[0].dims, o.writes.dims, place)];
    into = largest ? std::max(into, x[place]) : into + x[place];
  }
}

void ApplyToElements(const DnnOperation& o, const DnnValues& values, std::vector<double>& y) {
  const Dims& dims = o.writes.dims;
  for (size_t place = 0; place < y.size(); ++place) {
    if (o.mode == CUDNN_POINTWISE_GEN_INDEX) {
      int64_t rest = place;
      for (size_t i = dims.size() - 1; i > static_cast<size_t>(o.axis); --i) rest /= dims[i];
      y[place] = static_cast<double>(rest % dims[o.axis]);
      continue;
    }
    double operands[3] = {};
    for (size_t k = 0; k < o.reads.size(); ++k)
      operands[k] = values.at(o.reads[k].number)[Broadcast(dims, o.reads[k].dims, place)];
    y[place] = Apply(o.mode, operands[0], operands[1], operands[2]);
  }
}

void Reshape(const DnnOperation& o, const DnnValues& values, std::vector<double>& y) {
  const std::vector<double>& x = values.at(o.reads[0].number);
  std::vector<double> memory(o.reads[0].At(o.reads[0].elements() - 1) + 1);
  for (size_t i = 0; i < x.size(); ++i) memory[o.reads[0].At(i)] = x[i];
  for (size_t i = 0; i < y.size(); ++i) y[i] = memory[o.writes.At(i)];
}

// Steps and dimensions in the order in which they lie.
std::vector<std::pair<int64_t, int64_t>> AxesInMemory(const DnnGraphTensor& tensor) {
  std::vector<std::pair<int64_t, int64_t>> axes;
  for (size_t i = 0; i < tensor.dims.size(); ++i) {
    if (tensor.dims[i] > 1) axes.emplace_back(tensor.steps[i], tensor.dims[i]);
  }
  std::sort(axes.begin(), axes.end());
  return axes;
}

std::string FaultOfElements(const DnnOperation& o) {
  const auto mode = static_cast<cudnnPointwiseMode_t>(o.mode);
  const cudnnDataType_t y = o.writes.type;
  if (o.reads.size() != DnnOperandsOf(mode)) return "an element-wise operation of another number of operands";
  for (size_t k = 0; k < o.reads.size(); ++k) {
    if (!Broadcasts(o.reads[k].dims, o.writes.dims)) return "operands that do not broadcast to their result";
    if ((k == 2) == IsNumber(o.reads[k].type)) return "an operand of a type that is not the operation's";
  }
  if (mode == CUDNN_POINTWISE_GEN_INDEX) {
    if (o.axis < 0 || o.axis >= static_cast<int64_t>(o.writes.dims.size())) return "indices of no axis";
    return y == CUDNN_DATA_INT32 && o.reads[0].dims == o.writes.dims ? "" : "indices that are not of int32";
  }
  return (mode == CUDNN_POINTWISE_CMP_GE) == (y == CUDNN_DATA_BOOLEAN) ? "" : "a result of another type";
}

std::string FaultOfProduct(const DnnOperation& o) {
  const size_t rank = o.writes.dims.size();
  const Dims &a = o.reads[0].dims, &b = o.reads[1].dims, &c = o.writes.dims;
  if (rank < 3 || a.size() != rank || b.size() != rank) return "a product of tensors of other ranks";
  if (a[rank - 1] != b[rank - 2] || a[rank - 2] != c[rank - 2] || b[rank - 1] != c[rank - 1])
    return "a product whose dimensions do not fit";
  for (size_t i = 0; i + 2 < rank; ++i) {
    if (std::max(a[i], b[i]) != c[i] || c[i] % a[i] != 0 || c[i] % b[i] != 0 || (a[i] != 1 && a[i] != c[i]) ||
        (b[i] != 1 && b[i] != c[i]))
      return "a product whose batches do not fit";
  }
  return o.reads[0].type == o.reads[1].type ? "" : "a product of two types";
}

}  // namespace

int64_t DnnGraphTensor::elements() const {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  return count;
}
size_t DnnGraphTensor::element_bytes() const {
  if (type == CUDNN_DATA_BOOLEAN) return 1;
  return type == CUDNN_DATA_INT32 ? 4 : ElementBytes(DnnTypeOf(type));
}
size_t DnnGraphTensor::bytes() const { return (At(elements() - 1) + 1) * element_bytes(); }
int64_t DnnGraphTensor::At(int64_t place) const {
  int64_t at = 0;
  for (size_t i = dims.size(); i-- > 0; place /= dims[i]) at += place % dims[i] * steps[i];
  return at;
}

size_t DnnOperandsOf(cudnnPointwiseMode_t mode) {
  switch (mode) {
    case CUDNN_POINTWISE_EXP:
    case CUDNN_POINTWISE_LOG:
    case CUDNN_POINTWISE_GEN_INDEX:
      return 1;
    case CUDNN_POINTWISE_ADD:
    case CUDNN_POINTWISE_SUB:
    case CUDNN_POINTWISE_MUL:
    case CUDNN_POINTWISE_DIV:
    case CUDNN_POINTWISE_CMP_GE:
      return 2;
    case CUDNN_POINTWISE_BINARY_SELECT:
      return 3;
    default:
      return 0;
  }
}

std::string FaultOf(const DnnGraphTensor& tensor) {
  const int64_t element = tensor.element_bytes();
  if (element == 0) return "a tensor of a type that the double does not know";
  if (tensor.dims.size() != tensor.steps.size())
    return "a tensor with another number of steps than dimensions";
  for (size_t i = 0; i < tensor.dims.size(); ++i) {
    if (tensor.dims[i] < 1 || tensor.steps[i] < 1) return "a tensor with a dimension or a step below 1";
  }
  if (tensor.alignment < element || (tensor.alignment & (tensor.alignment - 1)) != 0)
    return "a tensor with no alignment";
  if (tensor.is_virtual && tensor.by_value) return "a tensor that is virtual and given by value";
  return tensor.by_value && tensor.elements() != 1 ? "a tensor of several elements by value" : "";
}

std::string FaultOf(const DnnOperation& o) {
  if (o.writes.by_value) return "a result that is given by value";
  if (o.kind == DnnOperation::Kind::kProduct) return FaultOfProduct(o);
  if (o.kind == DnnOperation::Kind::kElements) return FaultOfElements(o);
  if (o.kind == DnnOperation::Kind::kReshape) {
    return AxesInMemory(o.reads[0]) == AxesInMemory(o.writes) ? "" : "a reshape to what lies elsewhere";
  }
  if (o.mode != CUDNN_REDUCE_TENSOR_ADD && o.mode != CUDNN_REDUCE_TENSOR_MAX)
    return "a reduction that the double does not know";
  return Broadcasts(o.writes.dims, o.reads[0].dims) ? "" : "a reduction to another shape";
}

std::string FaultOf(const std::vector<DnnOperation>& graph) {
  std::map<int64_t, DnnGraphTensor> tensors;
  std::set<int64_t> given, written, read;
  for (const DnnOperation& o : graph) given.insert(o.writes.number);
  for (const DnnOperation& o : graph) {
    std::vector<DnnGraphTensor> all = o.reads;
    all.push_back(o.writes);
    for (const DnnGraphTensor& tensor : all) {
      if (!(tensors.emplace(tensor.number, tensor).first->second == tensor))
        return "two tensors of one number: " + std::to_string(tensor.number);
    }
    for (const DnnGraphTensor& tensor : o.reads) {
      read.insert(tensor.number);
      if ((tensor.is_virtual || given.count(tensor.number) > 0) && written.count(tensor.number) == 0)
        return "a tensor that no operation before gives: " + std::to_string(tensor.number);
    }
    if (!written.insert(o.writes.number).second)
      return "a tensor that two operations give: " + std::to_string(o.writes.number);
  }
  for (const int64_t number : written) {
    if (tensors.at(number).is_virtual && read.count(number) == 0)
      return "a virtual tensor that no operation reads: " + std::to_string(number);
  }
  return "";
}

bool IsSupported(const std::vector<DnnOperation>& graph) {
  for (const DnnOperation& o : graph) {
    if (o.kind != DnnOperation::Kind::kProduct) continue;
    std::vector<DnnGraphTensor> operands = o.reads;
    operands.push_back(o.writes);
    for (const DnnGraphTensor& tensor : operands) {
      if (tensor.is_virtual) continue;
      if (tensor.type != CUDNN_DATA_HALF && tensor.type != CUDNN_DATA_BFLOAT16) return false;
      if (*std::min_element(tensor.steps.begin(), tensor.steps.end()) != 1) return false;
      for (const int64_t step : tensor.steps) {
        if (step != 1 && step * static_cast<int64_t>(tensor.element_bytes()) % 16 != 0) return false;
      }
    }
  }
  return true;
}

void Compute(const std::vector<DnnOperation>& graph, DnnValues& values) {
  for (const DnnOperation& o : graph) {
    std::vector<double> y(o.writes.elements());
    if (o.kind == DnnOperation::Kind::kProduct) Multiply(o, values, y);
    if (o.kind == DnnOperation::Kind::kElements) ApplyToElements(o, values, y);
    if (o.kind == DnnOperation::Kind::kReduction) Reduce(o, values, y);
    if (o.kind == DnnOperation::Kind::kReshape) Reshape(o, values, y);
    for (double& value : y) value = Rounded(o.writes.type, value);
    values[o.writes.number] = std::move(y);
  }
}

std::vector<double> ReadValues(const DnnGraphTensor& tensor, const void* data) {
  std::vector<double> values(tensor.elements());
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = GetElement(DnnTypeOf(tensor.type), data, tensor.At(i));
  return values;
}
void WriteValues(const DnnGraphTensor& tensor, const std::vector<double>& values, void* data) {
  for (size_t i = 0; i < values.size(); ++i)
    PutElement(DnnTypeOf(tensor.type), data, tensor.At(i), values[i]);
}

}  // namespace cuda_emulation
