// How much workspace kernels want, asked of the CPU device before there is a plan.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "compiler/ir/graph.h"
#include "runtime/device/device.h"

namespace pipec {

class KernelWorkspace {
 public:
  // Bytes, on a rank of so many threads, as some kernels want some for each; 0 where the device has no kernel for
  // the node, as without contents that are known when a plan is loaded.
  int64_t BytesOf(const Node& node, int threads);

 private:
  // By number of threads.
  struct Asked {
    std::unique_ptr<Device> device;
    absl::flat_hash_map<std::string, int64_t> bytes;  // by CostKey: kernels alike are asked once
  };
  std::map<int, Asked> asked_;
};

}  // namespace pipec
