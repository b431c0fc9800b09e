#include "runtime/device/cuda/kernels/dnn_graph.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/cuda/kernels/dnn_status.h"

namespace pipec::cuda {
namespace {

constexpr int64_t kAlignment = 16;  // bytes, of operands

template <typename T>
absl::Status Set(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                 cudnnBackendAttributeType_t type, absl::Span<const T> values) {
  return DnnStatus(
      cudnnBackendSetAttribute(descriptor, name, type, static_cast<int64_t>(values.size()), values.data()),
      absl::StrCat("cudnnBackendSetAttribute of ", static_cast<int>(name)));
}
template <typename T>
absl::Status Set(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                 cudnnBackendAttributeType_t type, const T& value) {
  return Set(descriptor, name, type, absl::Span<const T>(&value, 1));
}

absl::Status Finalize(cudnnBackendDescriptor_t descriptor, absl::string_view what) {
  return DnnStatus(cudnnBackendFinalize(descriptor), absl::StrCat("cudnnBackendFinalize of ", what));
}

absl::Status Create(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* made) {
  return DnnStatus(cudnnBackendCreateDescriptor(type, made),
                   absl::StrCat("cudnnBackendCreateDescriptor of ", static_cast<int>(type)));
}

// How many there were, of at most `room`.
absl::StatusOr<int64_t> Get(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                            cudnnBackendAttributeType_t type, int64_t room, void* values) {
  int64_t found = 0;
  RETURN_IF_ERROR(DnnStatus(cudnnBackendGetAttribute(descriptor, name, type, room, &found, values),
                            absl::StrCat("cudnnBackendGetAttribute of ", static_cast<int>(name))));
  return found;
}

}  // namespace

DnnGraph::Axes DnnGraph::Packed(const std::array<int64_t, 4>& dims) {
  return {dims, {dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1}};
}

absl::StatusOr<cudnnBackendDescriptor_t> DnnGraph::New(cudnnBackendDescriptorType_t type) {
  auto made = std::make_unique<Descriptor>();
  RETURN_IF_ERROR(Create(type, &*made));
  owned_.push_back(std::move(made));
  return *owned_.back();
}

absl::StatusOr<DnnGraph::Tensor> DnnGraph::Add(Kind kind, cudnnDataType_t type, const Axes& axes) {
  ASSIGN_OR_RETURN(const cudnnBackendDescriptor_t made, New(CUDNN_BACKEND_TENSOR_DESCRIPTOR));
  const Tensor number = static_cast<Tensor>(tensors_.size()) + 1;
  RETURN_IF_ERROR(Set(made, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, number));
  RETURN_IF_ERROR(Set(made, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type));
  RETURN_IF_ERROR(Set(made, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, kAlignment));
  RETURN_IF_ERROR(Set(made, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, absl::MakeConstSpan(axes.dims)));
  RETURN_IF_ERROR(Set(made, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, absl::MakeConstSpan(axes.steps)));
  RETURN_IF_ERROR(Set(made, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, kind == Kind::kVirtual));
  RETURN_IF_ERROR(Set(made, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, kind == Kind::kScalar));
  RETURN_IF_ERROR(Finalize(made, "a tensor"));
  tensors_.push_back(made);
  return number;
}

absl::Status DnnGraph::SetTensor(cudnnBackendDescriptor_t operation, cudnnBackendAttributeName_t name,
                                 Tensor tensor) {
  return Set(operation, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, tensors_[tensor - 1]);
}

absl::StatusOr<cudnnBackendDescriptor_t> DnnGraph::NewOperation(cudnnBackendDescriptorType_t type,
                                                                cudnnBackendAttributeName_t how_name,
                                                                cudnnBackendDescriptor_t how) {
  ASSIGN_OR_RETURN(const cudnnBackendDescriptor_t made, New(type));
  RETURN_IF_ERROR(Set(made, how_name, CUDNN_TYPE_BACKEND_DESCRIPTOR, how));
  operations_.push_back(made);
  return made;
}

absl::Status DnnGraph::Multiply(Tensor a, Tensor b, Tensor c) {
  ASSIGN_OR_RETURN(const cudnnBackendDescriptor_t how, New(CUDNN_BACKEND_MATMUL_DESCRIPTOR));
  RETURN_IF_ERROR(Set(how, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT));
  RETURN_IF_ERROR(Finalize(how, "how to multiply"));
  ASSIGN_OR_RETURN(
      const cudnnBackendDescriptor_t product,
      NewOperation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_ATTR_OPERATION_MATMUL_DESC, how));
  RETURN_IF_ERROR(SetTensor(product, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a));
  RETURN_IF_ERROR(SetTensor(product, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b));
  RETURN_IF_ERROR(SetTensor(product, CUDNN_ATTR_OPERATION_MATMUL_CDESC, c));
  return Finalize(product, "a product");
}

absl::Status DnnGraph::Apply(cudnnPointwiseMode_t mode, cudnnDataType_t compute,
                             absl::Span<const Tensor> operands, Tensor y, int64_t axis) {
  constexpr cudnnBackendAttributeName_t kOperands[] = {CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
                                                       CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                                                       CUDNN_ATTR_OPERATION_POINTWISE_TDESC};
  ASSIGN_OR_RETURN(const cudnnBackendDescriptor_t how, New(CUDNN_BACKEND_POINTWISE_DESCRIPTOR));
  RETURN_IF_ERROR(Set(how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode));
  RETURN_IF_ERROR(Set(how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, compute));
  if (axis >= 0) RETURN_IF_ERROR(Set(how, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, axis));
  RETURN_IF_ERROR(Finalize(how, "how to compute element-wise"));
  ASSIGN_OR_RETURN(const cudnnBackendDescriptor_t applied,
                   NewOperation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
                                CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how));
  for (size_t k = 0; k < operands.size(); ++k) RETURN_IF_ERROR(SetTensor(applied, kOperands[k], operands[k]));
  RETURN_IF_ERROR(SetTensor(applied, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y));
  return Finalize(applied, "an element-wise operation");
}

absl::Status DnnGraph::Reduce(cudnnReduceTensorOp_t mode, Tensor x, Tensor y) {
  ASSIGN_OR_RETURN(const cudnnBackendDescriptor_t how, New(CUDNN_BACKEND_REDUCTION_DESCRIPTOR));
  RETURN_IF_ERROR(Set(how, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, mode));
  RETURN_IF_ERROR(Set(how, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT));
  RETURN_IF_ERROR(Finalize(how, "how to reduce"));
  ASSIGN_OR_RETURN(
      const cudnnBackendDescriptor_t reduced,
      NewOperation(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, CUDNN_ATTR_OPERATION_REDUCTION_DESC, how));
  RETURN_IF_ERROR(SetTensor(reduced, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x));
  RETURN_IF_ERROR(SetTensor(reduced, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y));
  return Finalize(reduced, "a reduction");
}

absl::Status DnnGraph::Transpose(Tensor x, Tensor y) {
  ASSIGN_OR_RETURN(const cudnnBackendDescriptor_t transposed,
                   New(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR));
  operations_.push_back(transposed);
  RETURN_IF_ERROR(SetTensor(transposed, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x));
  RETURN_IF_ERROR(SetTensor(transposed, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y));
  return Finalize(transposed, "a transpose");
}

absl::Status DnnGraph::Compile(cudnnHandle_t dnn, int64_t most_workspace) {
  ASSIGN_OR_RETURN(const cudnnBackendDescriptor_t graph, New(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR));
  RETURN_IF_ERROR(Set(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, dnn));
  RETURN_IF_ERROR(Set(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                      absl::MakeConstSpan(operations_)));
  RETURN_IF_ERROR(Finalize(graph, "the graph"));
  Descriptor advice;
  RETURN_IF_ERROR(Create(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, &advice));
  const cudnnBackendDescriptor_t asked = advice;
  RETURN_IF_ERROR(Set(asked, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, graph));
  RETURN_IF_ERROR(Set(asked, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, CUDNN_HEUR_MODE_A));
  RETURN_IF_ERROR(Finalize(asked, "the heuristics"));
  ASSIGN_OR_RETURN(const int64_t room,
                   Get(asked, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, nullptr));
  std::vector<cudnnBackendDescriptor_t> proposals(std::max<int64_t>(room, 0));
  for (cudnnBackendDescriptor_t& proposal : proposals) {
    ASSIGN_OR_RETURN(proposal, New(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
  }
  ASSIGN_OR_RETURN(const int64_t found, Get(asked, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                            CUDNN_TYPE_BACKEND_DESCRIPTOR, room, proposals.data()));
  for (int64_t i = 0; i < std::min(found, room); ++i) {
    const absl::StatusOr<bool> taken = Take(dnn, proposals[i], most_workspace);
    if (taken.ok() && *taken) return absl::OkStatus();
    if (!taken.ok() && !absl::IsUnimplemented(taken.status())) return taken.status();
  }
  return absl::UnimplementedError(
      absl::StrCat("cuDNN has no plan whose results repeat, in ", most_workspace, " bytes"));
}

absl::StatusOr<bool> DnnGraph::Take(cudnnHandle_t dnn, cudnnBackendDescriptor_t proposal,
                                    int64_t most_workspace) {
  Descriptor engine;
  RETURN_IF_ERROR(Create(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine));
  cudnnBackendDescriptor_t own_engine = engine;
  RETURN_IF_ERROR(
      Get(proposal, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &own_engine).status());
  std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes{};
  ASSIGN_OR_RETURN(const int64_t noted, Get(own_engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                            CUDNN_TYPE_NUMERICAL_NOTE, notes.size(), notes.data()));
  const auto last = notes.begin() + std::min<int64_t>(noted, notes.size());
  if (std::find(notes.begin(), last, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) != last) return false;
  auto plan = std::make_unique<Descriptor>();
  RETURN_IF_ERROR(Create(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &*plan));
  RETURN_IF_ERROR(Set<cudnnHandle_t>(*plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, dnn));
  RETURN_IF_ERROR(
      Set(*plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, proposal));
  RETURN_IF_ERROR(Finalize(*plan, "a plan"));
  int64_t bytes = 0;
  RETURN_IF_ERROR(Get(*plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &bytes).status());
  if (bytes > most_workspace) return false;
  workspace_bytes_ = bytes;
  plan_ = *plan;
  owned_.push_back(std::move(plan));
  return true;
}

absl::Status DnnGraph::Run(cudnnHandle_t dnn, cudaStream_t stream,
                           absl::Span<const std::pair<Tensor, const void*>> operands, void* workspace) const {
  std::vector<Tensor> numbers;
  std::vector<const void*> addresses;
  for (const auto& [number, address] : operands) {
    numbers.push_back(number);
    addresses.push_back(address);
  }
  Descriptor pack;
  RETURN_IF_ERROR(Create(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack));
  RETURN_IF_ERROR(
      Set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, absl::MakeConstSpan(numbers)));
  RETURN_IF_ERROR(
      Set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, absl::MakeConstSpan(addresses)));
  RETURN_IF_ERROR(Set(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace));
  RETURN_IF_ERROR(Finalize(pack, "the operands"));
  RETURN_IF_DNN_ERROR(cudnnSetStream(dnn, stream));
  return DnnStatus(cudnnBackendExecute(dnn, plan_, pack), "cudnnBackendExecute");
}

}  // namespace pipec::cuda
