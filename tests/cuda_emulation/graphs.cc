// Doubles of the calls about graphs.
#include <cuda_runtime_api.h>

#include "tests/cuda_emulation/call.h"
#include "tests/cuda_emulation/capture.h"

namespace cuda_emulation {
namespace {

cudaError_t Instantiate(const char* name, cudaGraphExec_t* exec, cudaGraph_t graph,
                        unsigned long long flags) {
  return UnsafeCall(name, [&](Machine& machine, auto&) {
    if (!machine.graphs.Has(graph))
      return machine.Refuse(cudaErrorInvalidValue, std::string(name) + " of a graph that lives no more");
    if (flags != 0)
      return machine.Refuse(cudaErrorInvalidValue, "the emulation knows no flags of cudaGraphInstantiate");
    *exec = machine.graph_execs.Add({graph->nodes, machine.ChainsOf(graph->nodes), nullptr});
    return cudaSuccess;
  });
}

bool SameTopology(const std::vector<Node>& a, const std::vector<Node>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].type != b[i].type || a[i].after != b[i].after || a[i].device != b[i].device) return false;
  }
  return true;
}

}  // namespace

extern "C" cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                            unsigned long long flags) {
  return Instantiate("cudaGraphInstantiate", exec, graph, flags);
}

extern "C" cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph,
                                                     unsigned long long flags) {
  return Instantiate("cudaGraphInstantiateWithFlags", exec, graph, flags);
}

// Nodes run in any order that the graph allows, after all earlier work of the stream and the graph's launch before.
extern "C" cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t handle) {
  return Call("cudaGraphLaunch", [&](Machine& machine, auto&) {
    CUstream_st* stream = machine.StreamOf(handle);
    if (!stream || !machine.graph_execs.Has(exec))
      return machine.Refuse(cudaErrorInvalidResourceHandle,
                            "cudaGraphLaunch of a graph or on a stream that lives no more");
    if (stream->capture) return RefuseOfCapturing(machine, *stream, "cudaGraphLaunch");
    const auto begin =
        machine.scheduler.Enqueue(*stream, "the begin of a graph", {}, {}, nullptr, {exec->last_launch});
    std::vector<std::shared_ptr<Operation>> operations;
    for (size_t i = 0; i < exec->nodes.size(); ++i) {
      const Node& node = exec->nodes[i];
      auto operation = std::make_shared<Operation>();
      operation->name = node.name;
      operation->device = node.device;
      operation->chain = exec->chains[i];
      operation->position = ++machine.graph_positions[exec->chains[i]];
      operation->work = node.work;
      operation->may_run = node.may_run;
      operation->operands = node.operands;
      std::vector<std::shared_ptr<Operation>> after{begin};
      for (const int earlier : node.after) after.push_back(operations[earlier]);
      machine.scheduler.Add(operation, after);
      operations.push_back(operation);
    }
    exec->last_launch = machine.scheduler.Enqueue(*stream, "the end of a graph", {}, {}, nullptr, operations);
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                           cudaGraphExecUpdateResultInfo* result) {
  return UnsafeCall("cudaGraphExecUpdate", [&](Machine& machine, auto&) {
    if (!machine.graph_execs.Has(exec) || !machine.graphs.Has(graph)) {
      return machine.Refuse(cudaErrorInvalidValue, "cudaGraphExecUpdate of a graph that lives no more");
    }
    *result = {};
    if (!SameTopology(exec->nodes, graph->nodes)) {
      result->result = cudaGraphExecUpdateErrorTopologyChanged;
      return cudaErrorGraphExecUpdateFailure;
    }
    exec->nodes = graph->nodes;
    result->result = cudaGraphExecUpdateSuccess;
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t handle) {
  return Call("cudaGraphUpload", [&](Machine& machine, auto&) {
    if (!machine.StreamOf(handle) || !machine.graph_execs.Has(exec)) {
      return machine.Refuse(cudaErrorInvalidResourceHandle,
                            "cudaGraphUpload of a graph or on a stream that lives no more");
    }
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return Call("cudaGraphGetNodes", [&](Machine& machine, auto&) {
    if (!machine.graphs.Has(graph))
      return machine.Refuse(cudaErrorInvalidValue, "cudaGraphGetNodes of a graph that lives no more");
    if (nodes) return machine.Refuse(cudaErrorNotSupported, "the emulation only counts the nodes of a graph");
    *count = graph->nodes.size();
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return ReleaseCall("cudaGraphDestroy", [&](Machine& machine, bool) {
    if (!machine.graphs.Has(graph))
      return machine.Refuse(cudaErrorInvalidValue, "cudaGraphDestroy of a graph that lives no more");
    machine.graphs.Remove(graph);
    return cudaSuccess;
  });
}

extern "C" cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  return ReleaseCall("cudaGraphExecDestroy", [&](Machine& machine, bool) {
    if (!machine.graph_execs.Has(exec))
      return machine.Refuse(cudaErrorInvalidValue, "cudaGraphExecDestroy of a graph that lives no more");
    machine.graph_execs.Remove(exec);
    return cudaSuccess;
  });
}

}  // namespace cuda_emulation
