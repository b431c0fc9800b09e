// The seeded choices of the emulation.
#pragma once

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace cuda_emulation {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  // One of 0 ... count-1.
  size_t Below(size_t count) { return engine_() % count; }
  template <typename T>
  T Take(std::vector<T>& from) {
    std::swap(from[Below(from.size())], from.back());
    T taken = std::move(from.back());
    from.pop_back();
    return taken;
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace cuda_emulation
