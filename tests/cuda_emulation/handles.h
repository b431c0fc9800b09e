// What CUDA's opaque handles point to here.
#pragma once

#include <driver_types.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/cuda_emulation/operation.h"

namespace cuda_emulation {

// A node of a captured graph. Its work can run any number of times.
struct Node {
  std::string name;
  cudaGraphNodeType type;
  int device;
  Work work;
  std::function<bool()> may_run;
  std::shared_ptr<const std::vector<OperandRange>> operands;
  std::vector<int> after;  // earlier nodes
};

// A capture from its begin to its end.
struct Capture {
  std::vector<Node> nodes;
  CUstream_st* origin;
  cudaStreamCaptureMode mode;
  std::thread::id thread;
  unsigned long long id;
  bool valid = true;
  std::set<CUstream_st*> streams;
};

}  // namespace cuda_emulation

struct CUstream_st {
  std::string name;
  int device;
  unsigned flags;
  int priority;
  int chain;
  uint32_t position = 0;                            // of the last operation
  std::shared_ptr<cuda_emulation::Operation> last;  // null: none yet

  std::shared_ptr<cuda_emulation::Capture> capture;  // null: not capturing
  std::vector<int> frontier;                         // nodes that the next one comes after
};

struct CUevent_st {
  int device;
  unsigned flags;
  std::shared_ptr<cuda_emulation::Operation> recorded;  // null: never, or in a capture

  std::shared_ptr<cuda_emulation::Capture> capture;  // where it was recorded last, if in one
  std::vector<int> frontier;
};

struct CUgraph_st {
  std::vector<cuda_emulation::Node> nodes;
};

struct CUgraphExec_st {
  std::vector<cuda_emulation::Node> nodes;
  std::vector<int> chains;                                 // of each node
  std::shared_ptr<cuda_emulation::Operation> last_launch;  // its end
};
