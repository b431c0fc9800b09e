#include "compiler/onnx/read/sparse_tensor.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/onnx/read/tensor_limits.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

// What a few bytes in a file may become in memory: this much at least, more only in proportion.
constexpr int64_t kAlwaysBytes = 64 << 20;
constexpr int64_t kMostPerStoredByte = 1000;

absl::StatusOr<std::vector<int64_t>> LinearIndices(const onnx::TensorProto& proto, const Shape& shape,
                                                   int64_t count) {
  ASSIGN_OR_RETURN(const Tensor tensor, ReadInlineTensor(proto));
  const int64_t rank = static_cast<int64_t>(shape.size());
  const bool linear = tensor.type.shape == Shape{count};
  if (tensor.type.dtype != DType::kInt64 || (!linear && tensor.type.shape != Shape{count, rank})) {
    return absl::InvalidArgumentError(absl::StrCat("has sparse indices of type ", ToString(tensor.type),
                                                   ", wanted int64[", count, "] or int64[", count, ",", rank,
                                                   "]"));
  }
  std::vector<int64_t> given(tensor.type.elements());
  if (!given.empty()) std::memcpy(given.data(), tensor.data.bytes->data(), given.size() * sizeof(int64_t));
  if (linear) return given;
  std::vector<int64_t> indices(count, 0);
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t axis = 0; axis < rank; ++axis) {
      const int64_t index = given[i * rank + axis];
      if (index < 0 || index >= shape[axis]) {
        return absl::InvalidArgumentError(
            absl::StrCat("has the sparse index ", index, " on axis ", axis, " of ", ToString(shape)));
      }
      indices[i] = indices[i] * shape[axis] + index;
    }
  }
  return indices;
}

absl::Status CheckIndices(const std::vector<int64_t>& indices, int64_t elements) {
  int64_t before = -1;
  for (int64_t index : indices) {
    if (index < 0 || index >= elements) {
      return absl::InvalidArgumentError(
          absl::StrCat("has the sparse index ", index, ", but ", elements, " elements"));
    }
    if (index <= before) {
      return absl::InvalidArgumentError(
          absl::StrCat("has sparse indices that do not rise: ", index, " after ", before));
    }
    before = index;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Tensor> Densify(const onnx::SparseTensorProto& proto) {
  ASSIGN_OR_RETURN(const Tensor values, ReadInlineTensor(proto.values()));
  Tensor dense{.type = {values.type.dtype, Shape(proto.dims().begin(), proto.dims().end())}};
  RETURN_IF_ERROR(CheckTensorLimits(dense.type));
  if (values.type.shape.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("has sparse values of shape ", ToString(values.type.shape), ", wanted one axis"));
  }
  const int64_t count = values.type.shape[0];
  ASSIGN_OR_RETURN(const std::vector<int64_t> indices,
                   LinearIndices(proto.indices(), dense.type.shape, count));
  RETURN_IF_ERROR(CheckIndices(indices, dense.type.elements()));
  const int64_t stored = static_cast<int64_t>(values.data.length + indices.size() * sizeof(int64_t));
  if (dense.type.bytes() > std::max(kAlwaysBytes, stored * kMostPerStoredByte)) {
    return absl::UnimplementedError(absl::StrCat("is sparse, ", count, " of the elements of ",
                                                 ToString(dense.type),
                                                 ": too few to hold all of them in memory"));
  }
  const int64_t size = SizeOf(dense.type.dtype);
  std::string bytes(dense.type.bytes(), '\0');
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(bytes.data() + indices[i] * size, values.data.bytes->data() + i * size, size);
  }
  dense.data.length = bytes.size();
  dense.data.bytes = std::make_shared<const std::string>(std::move(bytes));
  return dense;
}

}  // namespace pipec
