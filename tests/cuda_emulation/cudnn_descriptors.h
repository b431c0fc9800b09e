// The descriptors of cuDNN's backend API: what is set of them, and what they were made into.
#pragma once

#include <cudnn.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/cuda_emulation/cudnn_graph.h"
#include "tests/cuda_emulation/cudnn_objects.h"

namespace cuda_emulation {

struct DnnDescriptor {
  cudnnBackendDescriptorType_t type{};
  bool finalized = false;
  std::map<cudnnBackendAttributeName_t, std::vector<std::byte>> attributes;

  // Of a graph, and of what is made from it: the heuristics' proposals, their engines, plans.
  std::shared_ptr<const std::vector<DnnOperation>> graph;
  int proposal = -1;

  bool Has(cudnnBackendAttributeName_t name) const { return attributes.count(name) > 0; }
  template <typename T>
  std::vector<T> All(cudnnBackendAttributeName_t name) const {
    const auto found = attributes.find(name);
    if (found == attributes.end()) return {};
    std::vector<T> values(found->second.size() / sizeof(T));
    std::memcpy(values.data(), found->second.data(), found->second.size());
    return values;
  }
  // The first one; T() if it is not set.
  template <typename T>
  T One(cudnnBackendAttributeName_t name) const {
    T value{};
    if (Has(name)) std::memcpy(&value, attributes.at(name).data(), sizeof value);
    return value;
  }
};

// What may be set of a descriptor.
struct DnnAttribute {
  cudnnBackendDescriptorType_t of;
  cudnnBackendAttributeName_t name;
  cudnnBackendAttributeType_t type;
  bool required = true;
  int64_t most = 1;
  cudnnBackendDescriptorType_t descriptor{};  // where it is of descriptors: of this type
};
const std::vector<DnnAttribute>& DnnAttributes();

// Makes a descriptor with all its attributes into what it describes. What is wrong with it, in words; "" if nothing.
// `supported` false: it is right, but nothing computes it.
std::string Complete(const Machine& machine, DnnDescriptor& descriptor, bool& supported);

// The proposals of the heuristics begin with what a careful caller does not take: one that would not repeat, one that
// wants more memory than there is, one that is not supported.
inline constexpr int kDnnProposals = 4, kDnnNotRepeating = 0, kDnnTooLarge = 1, kDnnNotSupported = 2;
inline constexpr int64_t kDnnPlanWorkspace = 1024;

}  // namespace cuda_emulation
