#include "runtime/transport/local/sum.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace pipec {
namespace {

// Block by block, so that what is added stays in the cache until all replicas have it.
template <typename T>
void AddUp(const Sum& sum, size_t summand) {
  constexpr int64_t kBlock = 1024;
  T block[kBlock];
  const int64_t elements = sum.ends[0].summands[summand].elements;
  for (int64_t first = 0; first < elements; first += kBlock) {
    const int64_t count = std::min(kBlock, elements - first);
    std::memcpy(block, static_cast<const T*>(sum.ends[0].summands[summand].data) + first, count * sizeof(T));
    for (size_t replica = 1; replica < sum.ends.size(); ++replica) {
      const T* other = static_cast<const T*>(sum.ends[replica].summands[summand].data) + first;
      for (int64_t i = 0; i < count; ++i) block[i] += other[i];
    }
    for (const SumEnd& end : sum.ends)
      std::memcpy(static_cast<T*>(end.summands[summand].data) + first, block, count * sizeof(T));
  }
}

}  // namespace

absl::Status CheckTypes(const Sum& sum, int stage) {
  const std::vector<Summand>& first = sum.ends[0].summands;
  for (size_t replica = 0; replica < sum.ends.size(); ++replica) {
    const std::vector<Summand>& own = sum.ends[replica].summands;
    const auto bad = [&](const auto&... fault) {
      return absl::FailedPreconditionError(
          absl::StrCat("sum of stage ", stage, " over the replicas: ", fault...));
    };
    if (own.size() != first.size())
      return bad(own.size(), " tensors of replica ", replica, ", ", first.size(), " of replica 0");
    for (size_t i = 0; i < own.size(); ++i) {
      if (own[i].dtype != DType::kFloat32 && own[i].dtype != DType::kFloat64)
        return bad("tensor ", i, " is ", Name(own[i].dtype), "; float32 and float64 are added up");
      if (own[i].dtype == first[i].dtype && own[i].elements == first[i].elements) continue;
      return bad("tensor ", i, " has ", own[i].elements, " elements of ", Name(own[i].dtype), " on replica ",
                 replica, ", ", first[i].elements, " of ", Name(first[i].dtype), " on replica 0");
    }
  }
  return absl::OkStatus();
}

void AddUpByHost(const Sum& sum) {
  for (size_t i = 0; i < sum.ends[0].summands.size(); ++i)
    sum.ends[0].summands[i].dtype == DType::kFloat32 ? AddUp<float>(sum, i) : AddUp<double>(sum, i);
}

}  // namespace pipec
