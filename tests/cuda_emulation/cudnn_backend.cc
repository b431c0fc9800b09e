// Doubles of the calls of cuDNN's backend API (cudnn_graph.h of the library): descriptors are made from attributes, and
// a plan runs a graph of products, element-wise operations and reductions, whatever they come to: each operation for
// itself, its result rounded to its type. They refuse what NVIDIA's documents forbid: attributes that a descriptor has
// not, of another type or missing, what is not finalized or finalized already, tensors that do not fit one another,
// virtual ones that nobody gives, operands without an address or not aligned.
#include <algorithm>
#include <cstring>

#include "tests/cuda_emulation/capture.h"
#include "tests/cuda_emulation/cudnn_descriptors.h"
#include "tests/cuda_emulation/transfer.h"

namespace cuda_emulation {
namespace {

size_t BytesOf(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_BOOLEAN:
      return sizeof(bool);
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    default:
      return sizeof(int);  // enumerations
  }
}

// A call about a descriptor: `body(machine, descriptor, refuse)`.
template <typename Body>
cudnnStatus_t DescriptorCall(const char* name, cudnnBackendDescriptor_t handle, const Body& body) {
  return DnnCall(name, [&](Machine& machine) {
    const auto refuse = [&](const std::string& why) {
      return machine.Refuse(cudaErrorInvalidValue, std::string(name) + ": " + why);
    };
    if (machine.dnn_objects.count(handle) == 0) return refuse("a descriptor that lives no more");
    return body(machine, DnnObject<DnnDescriptor>(handle), refuse);
  });
}

// Into the first `room` descriptors of `to`, which the caller has made.
template <typename Refuse>
cudaError_t Give(const Machine& machine, const DnnDescriptor& from, cudnnBackendDescriptorType_t type,
                 int first, int64_t room, void* to, const Refuse& refuse) {
  for (int64_t i = 0; i < room; ++i) {
    void* const into = static_cast<void**>(to)[i];
    if (machine.dnn_objects.count(into) == 0 || DnnObject<DnnDescriptor>(into).type != type)
      return refuse("there is no descriptor of this type for the result");
    auto& made = DnnObject<DnnDescriptor>(into);
    made.graph = from.graph;
    made.proposal = first + static_cast<int>(i);
    made.finalized = true;
  }
  return cudaSuccess;
}

// An operand with its address; one by value as it is when the plan is enqueued.
struct Bound {
  DnnGraphTensor tensor;
  void* address = nullptr;
  bool written = false;
  std::vector<double> value;
};

// What is wrong, in words, and what runs.
std::string Bind(const std::vector<DnnOperation>& graph, const DnnDescriptor& pack, std::vector<Bound>& bound,
                 bool& aligned) {
  const std::vector<int64_t> numbers = pack.All<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const std::vector<void*> addresses = pack.All<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  std::map<int64_t, Bound> all;
  for (const DnnOperation& o : graph) {
    for (const DnnGraphTensor& tensor : o.reads) all[tensor.number].tensor = tensor;
    all[o.writes.number].tensor = o.writes;
    all[o.writes.number].written = true;
  }
  for (auto& [number, each] : all) {
    if (each.tensor.is_virtual) continue;
    const auto found = std::find(numbers.begin(), numbers.end(), number);
    if (found == numbers.end()) return "tensor " + std::to_string(number) + " has no address";
    each.address = addresses[found - numbers.begin()];
    if (each.address == nullptr) return "tensor " + std::to_string(number) + " lies nowhere";
    if (each.tensor.by_value) each.value = ReadValues(each.tensor, each.address);
    if (!each.tensor.by_value && reinterpret_cast<uintptr_t>(each.address) % each.tensor.alignment != 0) {
      aligned = false;
      return "tensor " + std::to_string(number) + " is not aligned to its " +
             std::to_string(each.tensor.alignment) + " bytes";
    }
    bound.push_back(each);
  }
  for (const int64_t number : numbers) {
    if (all.count(number) == 0 || all.at(number).tensor.is_virtual)
      return "an address for a tensor that has none: " + std::to_string(number);
  }
  return "";
}

std::optional<Failure> RunPlan(const Operation& operation, const std::vector<DnnOperation>& graph,
                               const std::vector<Bound>& bound, void* workspace) {
  for (const Bound& each : bound) {
    if (each.tensor.by_value) continue;
    if (auto failure = CheckRange(operation, each.address, each.tensor.bytes(),
                                  each.written ? Access::kWrite : Access::kRead))
      return failure;
  }
  if (auto failure = CheckRange(operation, workspace, kDnnPlanWorkspace, Access::kWrite)) return failure;
  std::memset(workspace, 0xff, kDnnPlanWorkspace);  // nothing may lie there
  DnnValues values;
  for (const Bound& each : bound) {
    if (each.tensor.by_value) values[each.tensor.number] = each.value;
    if (!each.tensor.by_value && !each.written)
      values[each.tensor.number] = ReadValues(each.tensor, each.address);
  }
  Compute(graph, values);
  for (const Bound& each : bound) {
    if (each.written) WriteValues(each.tensor, values.at(each.tensor.number), each.address);
  }
  return std::nullopt;
}

}  // namespace

extern "C" cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                                      cudnnBackendDescriptor_t* made) {
  return DnnCall("cudnnBackendCreateDescriptor", [&](Machine& machine) {
    auto* const descriptor = new DnnDescriptor;
    descriptor->type = type;
    return DnnAdd(machine, made, descriptor);
  });
}
extern "C" cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t handle) {
  return DnnDestroy<DnnDescriptor>("cudnnBackendDestroyDescriptor", handle);
}

extern "C" cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t handle,
                                                  cudnnBackendAttributeName_t name,
                                                  cudnnBackendAttributeType_t type, int64_t count,
                                                  const void* values) {
  return DescriptorCall(
      "cudnnBackendSetAttribute", handle, [&](Machine& machine, DnnDescriptor& own, auto& refuse) {
        const auto attribute =
            std::find_if(DnnAttributes().begin(), DnnAttributes().end(),
                         [&](const DnnAttribute& each) { return each.of == own.type && each.name == name; });
        if (attribute == DnnAttributes().end())
          return refuse("a descriptor without attribute " + std::to_string(name));
        if (own.finalized) return refuse("of a descriptor that is finalized");
        if (attribute->type != type)
          return refuse("attribute " + std::to_string(name) + " is of another type");
        if (count < 1 || count > attribute->most || values == nullptr)
          return refuse("attribute " + std::to_string(name) + " does not have " + std::to_string(count) +
                        " elements");
        const auto* const bytes = static_cast<const std::byte*>(values);
        if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
          for (int64_t i = 0; i < count; ++i) {
            const void* const referred = static_cast<void* const*>(values)[i];
            if (machine.dnn_objects.count(referred) == 0) return refuse("refers to what lives no more");
            const auto& other = DnnObject<DnnDescriptor>(referred);
            if (!other.finalized) return refuse("refers to a descriptor that is not finalized");
            if (attribute->most == 1 && other.type != attribute->descriptor)
              return refuse("attribute " + std::to_string(name) + " refers to a descriptor of another type");
          }
        }
        own.attributes[name].assign(bytes, bytes + count * BytesOf(type));
        return cudaSuccess;
      });
}

extern "C" cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t handle) {
  return DescriptorCall("cudnnBackendFinalize", handle,
                        [&](Machine& machine, DnnDescriptor& own, auto& refuse) {
                          if (own.finalized) return refuse("of a descriptor that is finalized");
                          bool supported = true;
                          if (const std::string fault = Complete(machine, own, supported); !fault.empty())
                            return refuse(fault);
                          own.finalized = supported;
                          return supported ? cudaSuccess : cudaErrorNotSupported;
                        });
}

extern "C" cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const handle,
                                                  cudnnBackendAttributeName_t name,
                                                  cudnnBackendAttributeType_t, int64_t room, int64_t* found,
                                                  void* values) {
  return DescriptorCall(
      "cudnnBackendGetAttribute", handle, [&](Machine& machine, DnnDescriptor& own, auto& refuse) {
        if (!own.finalized) return refuse("of a descriptor that is not finalized");
        if (own.type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR && name == CUDNN_ATTR_ENGINEHEUR_RESULTS) {
          const int64_t proposals = IsSupported(*own.graph) ? kDnnProposals : 0;
          *found = room == 0 ? proposals : std::min(room, proposals);
          return Give(machine, own, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, 0, std::min(room, proposals), values,
                      refuse);
        }
        if (own.type == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR && name == CUDNN_ATTR_ENGINECFG_ENGINE) {
          *found = 1;
          return Give(machine, own, CUDNN_BACKEND_ENGINE_DESCRIPTOR, own.proposal, 1, values, refuse);
        }
        if (own.type == CUDNN_BACKEND_ENGINE_DESCRIPTOR && name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE) {
          const cudnnBackendNumericalNote_t notes[] = {CUDNN_NUMERICAL_NOTE_TENSOR_CORE,
                                                       CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC};
          *found = std::min<int64_t>(room, own.proposal == kDnnNotRepeating ? 2 : 1);
          std::memcpy(values, notes, *found * sizeof notes[0]);
          return cudaSuccess;
        }
        if (own.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR &&
            name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) {
          *found = 1;
          *static_cast<int64_t*>(values) =
              own.proposal == kDnnTooLarge ? int64_t{1} << 40 : kDnnPlanWorkspace;
          return cudaSuccess;
        }
        return refuse("the double gives no attribute " + std::to_string(name) + " of such a descriptor");
      });
}

extern "C" cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan_handle,
                                             cudnnBackendDescriptor_t pack_handle) {
  return DescriptorCall(
      "cudnnBackendExecute", plan_handle, [&](Machine& machine, DnnDescriptor& plan, auto& refuse) {
        if (machine.dnn_objects.count(pack_handle) == 0) return refuse("operands that live no more");
        const auto& pack = DnnObject<DnnDescriptor>(pack_handle);
        if (plan.type != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR ||
            pack.type != CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)
          return refuse("a plan and its operands are wanted");
        if (!plan.finalized || !pack.finalized) return refuse("a plan or operands that are not finalized");
        if (plan.One<cudnnHandle_t>(CUDNN_ATTR_EXECUTION_PLAN_HANDLE) != handle)
          return refuse("the plan is another handle's");
        if (plan.proposal == kDnnNotRepeating || plan.proposal == kDnnTooLarge)
          return refuse("a plan that does not repeat or wants too much memory");
        const auto& own = DnnObject<DnnHandle>(handle);
        CUstream_st* const stream = machine.StreamOf(own.stream);
        if (!stream) return refuse("on a stream that lives no more");
        if (own.device != CurrentDevice()) return refuse("the handle is another device's");
        std::vector<Bound> bound;
        bool aligned = true;
        if (const std::string fault = Bind(*plan.graph, pack, bound, aligned); !fault.empty()) {
          return machine.Refuse(aligned ? cudaErrorInvalidValue : cudaErrorMisalignedAddress,
                                "cudnnBackendExecute: " + fault);
        }
        void* const workspace = pack.One<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
        if (workspace == nullptr || reinterpret_cast<uintptr_t>(workspace) % 256 != 0)
          return refuse("no workspace, or not aligned to 256 bytes");
        return Submit(machine, *stream, "cudnnBackendExecute", cudaGraphNodeTypeKernel,
                      [graph = plan.graph, bound, workspace](const Operation& operation) {
                        return RunPlan(operation, *graph, bound, workspace);
                      });
      });
}

}  // namespace cuda_emulation
