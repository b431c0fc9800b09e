// The seeded choices of the emulation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace cuda_emulation {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  // One of 0 ... count-1.
  size_t Below(size_t count) { return static_cast<unsigned __int128>(Next()) * count >> 64; }
  template <typename T>
  T Take(std::vector<T>& from) {
    std::swap(from[Below(from.size())], from.back());
    T taken = std::move(from.back());
    from.pop_back();
    return taken;
  }

 private:
  // Splitmix64 (Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", 2014): chosen for every
  // switch of threads.
  uint64_t Next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }

  uint64_t state_;
};

}  // namespace cuda_emulation
