// Which attributes the descriptors of cuDNN's backend API have, and what becomes of them when they are finalized.
#include "tests/cuda_emulation/cudnn_descriptors.h"

namespace cuda_emulation {
namespace {

constexpr auto kTensor = CUDNN_BACKEND_TENSOR_DESCRIPTOR;
constexpr auto kPointwise = CUDNN_BACKEND_POINTWISE_DESCRIPTOR;
constexpr auto kMatmul = CUDNN_BACKEND_MATMUL_DESCRIPTOR;
constexpr auto kReduction = CUDNN_BACKEND_REDUCTION_DESCRIPTOR;
constexpr auto kOfElements = CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR;
constexpr auto kProduct = CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR;
constexpr auto kReduced = CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR;
constexpr auto kReshaped = CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR;
constexpr auto kGraph = CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR;
constexpr auto kHeuristics = CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR;
constexpr auto kConfiguration = CUDNN_BACKEND_ENGINECFG_DESCRIPTOR;
constexpr auto kPlan = CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR;
constexpr auto kPack = CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR;
constexpr auto kDescriptor = CUDNN_TYPE_BACKEND_DESCRIPTOR;

DnnGraphTensor TensorOf(const DnnDescriptor& d) {
  return {
      d.One<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID),      d.One<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE),
      d.One<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT), d.All<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS),
      d.All<int64_t>(CUDNN_ATTR_TENSOR_STRIDES),        d.One<bool>(CUDNN_ATTR_TENSOR_IS_VIRTUAL),
      d.One<bool>(CUDNN_ATTR_TENSOR_IS_BY_VALUE)};
}

const DnnDescriptor& Referred(const DnnDescriptor& d, cudnnBackendAttributeName_t name) {
  return *d.One<const DnnDescriptor*>(name);
}

DnnOperation OperationOf(const DnnDescriptor& d) {
  DnnOperation o;
  const auto read = [&](cudnnBackendAttributeName_t name) {
    if (d.Has(name)) o.reads.push_back(TensorOf(Referred(d, name)));
  };
  switch (d.type) {
    case kProduct:
      o.kind = DnnOperation::Kind::kProduct;
      read(CUDNN_ATTR_OPERATION_MATMUL_ADESC);
      read(CUDNN_ATTR_OPERATION_MATMUL_BDESC);
      o.writes = TensorOf(Referred(d, CUDNN_ATTR_OPERATION_MATMUL_CDESC));
      break;
    case kReduced:
      o.kind = DnnOperation::Kind::kReduction;
      o.mode = Referred(d, CUDNN_ATTR_OPERATION_REDUCTION_DESC)
                   .One<cudnnReduceTensorOp_t>(CUDNN_ATTR_REDUCTION_OPERATOR);
      read(CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
      o.writes = TensorOf(Referred(d, CUDNN_ATTR_OPERATION_REDUCTION_YDESC));
      break;
    case kReshaped:
      o.kind = DnnOperation::Kind::kReshape;
      read(CUDNN_ATTR_OPERATION_RESHAPE_XDESC);
      o.writes = TensorOf(Referred(d, CUDNN_ATTR_OPERATION_RESHAPE_YDESC));
      break;
    default: {
      const DnnDescriptor& how = Referred(d, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
      o.kind = DnnOperation::Kind::kElements;
      o.mode = how.One<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE);
      if (how.Has(CUDNN_ATTR_POINTWISE_AXIS)) o.axis = how.One<int64_t>(CUDNN_ATTR_POINTWISE_AXIS);
      for (const auto name : {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                              CUDNN_ATTR_OPERATION_POINTWISE_TDESC})
        read(name);
      o.writes = TensorOf(Referred(d, CUDNN_ATTR_OPERATION_POINTWISE_YDESC));
    }
  }
  return o;
}

std::string CompleteGraph(DnnDescriptor& graph) {
  std::vector<DnnOperation> operations;
  for (const DnnDescriptor* operation : graph.All<const DnnDescriptor*>(CUDNN_ATTR_OPERATIONGRAPH_OPS))
    operations.push_back(OperationOf(*operation));
  const std::string fault = FaultOf(operations);
  if (fault.empty()) graph.graph = std::make_shared<const std::vector<DnnOperation>>(std::move(operations));
  return fault;
}

std::string FaultOfPack(const DnnDescriptor& pack) {
  const std::vector<int64_t> numbers = pack.All<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const std::vector<void*> pointers = pack.All<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  if (numbers.size() != pointers.size()) return "as many numbers as addresses are wanted";
  std::map<int64_t, int> count;
  for (const int64_t number : numbers) {
    if (++count[number] > 1) return "a number stands there twice: " + std::to_string(number);
  }
  return "";
}

std::string FaultOfHow(const DnnDescriptor& how) {
  if (how.type != kPointwise) {
    return how.One<cudnnDataType_t>(how.type == kMatmul ? CUDNN_ATTR_MATMUL_COMP_TYPE
                                                        : CUDNN_ATTR_REDUCTION_COMP_TYPE) == CUDNN_DATA_FLOAT
               ? ""
               : "nothing computes in this type";
  }
  const auto mode = how.One<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE);
  if (DnnOperandsOf(mode) == 0) return "an element-wise operation that the double does not know";
  if ((mode == CUDNN_POINTWISE_GEN_INDEX) != how.Has(CUDNN_ATTR_POINTWISE_AXIS))
    return "indices want an axis, and nothing else does";
  return "";
}

}  // namespace

const std::vector<DnnAttribute>& DnnAttributes() {
  static const auto* const attributes = new std::vector<DnnAttribute>{
      {kTensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64},
      {kTensor, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE},
      {kTensor, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64},
      {kTensor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, true, CUDNN_DIM_MAX},
      {kTensor, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, true, CUDNN_DIM_MAX},
      {kTensor, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, false},
      {kTensor, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, false},
      {kPointwise, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE},
      {kPointwise, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE},
      {kPointwise, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, false},
      {kMatmul, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE},
      {kReduction, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE},
      {kReduction, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE},
      {kOfElements, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, kDescriptor, true, 1, kPointwise},
      {kOfElements, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, kDescriptor, true, 1, kTensor},
      {kOfElements, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, kDescriptor, false, 1, kTensor},
      {kOfElements, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, kDescriptor, false, 1, kTensor},
      {kOfElements, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, kDescriptor, true, 1, kTensor},
      {kProduct, CUDNN_ATTR_OPERATION_MATMUL_DESC, kDescriptor, true, 1, kMatmul},
      {kProduct, CUDNN_ATTR_OPERATION_MATMUL_ADESC, kDescriptor, true, 1, kTensor},
      {kProduct, CUDNN_ATTR_OPERATION_MATMUL_BDESC, kDescriptor, true, 1, kTensor},
      {kProduct, CUDNN_ATTR_OPERATION_MATMUL_CDESC, kDescriptor, true, 1, kTensor},
      {kReduced, CUDNN_ATTR_OPERATION_REDUCTION_DESC, kDescriptor, true, 1, kReduction},
      {kReduced, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, kDescriptor, true, 1, kTensor},
      {kReduced, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, kDescriptor, true, 1, kTensor},
      {kReshaped, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, kDescriptor, true, 1, kTensor},
      {kReshaped, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, kDescriptor, true, 1, kTensor},
      {kGraph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE},
      {kGraph, CUDNN_ATTR_OPERATIONGRAPH_OPS, kDescriptor, true, 1 << 10},
      {kHeuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, kDescriptor, true, 1, kGraph},
      {kHeuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE},
      {kPlan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE},
      {kPlan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, kDescriptor, true, 1, kConfiguration},
      {kPack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, true, 1 << 10},
      {kPack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, true, 1 << 10},
      {kPack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR},
  };
  return *attributes;
}

std::string Complete(const Machine& machine, DnnDescriptor& descriptor, bool& supported) {
  supported = true;
  for (const DnnAttribute& attribute : DnnAttributes()) {
    if (attribute.of != descriptor.type) continue;
    if (attribute.required && !descriptor.Has(attribute.name))
      return "attribute " + std::to_string(attribute.name) + " is not set";
    if (attribute.type != kDescriptor && attribute.type != CUDNN_TYPE_HANDLE) continue;
    for (const void* referred : descriptor.All<const void*>(attribute.name)) {
      if (machine.dnn_objects.count(referred) == 0)
        return "attribute " + std::to_string(attribute.name) + " refers to what lives no more";
    }
  }
  switch (descriptor.type) {
    case kTensor:
      return FaultOf(TensorOf(descriptor));
    case kPointwise:
    case kMatmul:
    case kReduction:
      return FaultOfHow(descriptor);
    case kOfElements:
    case kProduct:
    case kReduced:
    case kReshaped:
      return FaultOf(OperationOf(descriptor));
    case kGraph:
      return CompleteGraph(descriptor);
    case kHeuristics:
      descriptor.graph = Referred(descriptor, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH).graph;
      return "";
    case kPlan: {
      const DnnDescriptor& configuration = Referred(descriptor, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
      descriptor.graph = configuration.graph;
      descriptor.proposal = configuration.proposal;
      supported = descriptor.proposal != kDnnNotSupported;
      return "";
    }
    case kPack:
      return FaultOfPack(descriptor);
    default:
      return "not a descriptor that is made so";
  }
}

}  // namespace cuda_emulation
