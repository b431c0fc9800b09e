// What makers of random instructions draw from.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/cuda/kernel_case.h"

namespace pipec {

using Random = std::mt19937_64;

inline int64_t Draw(Random& random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}

inline DType AnyFloat(Random& random) {
  constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16};
  return kTypes[Draw(random, 0, 3)];
}
inline DType WideFloat(Random& random) { return Draw(random, 0, 1) ? DType::kFloat32 : DType::kFloat64; }

// Up to a few thousand elements; often dimensions that fill 16 bytes, often not.
inline Shape AnyShape(Random& random) {
  Shape shape;
  for (int64_t rank = Draw(random, 0, 4); rank > 0; --rank) {
    constexpr int64_t kDims[] = {1, 2, 3, 5, 7, 8, 16, 0};
    shape.push_back(kDims[Draw(random, 0, Draw(random, 0, 9) == 0 ? 7 : 6)]);
  }
  if (Draw(random, 0, 3) == 0) shape = {Draw(random, 0, 3000)};
  return shape;
}

inline void AddInput(KernelCase& c, const TensorType& type, Random& random, bool positive = false) {
  c.spec.inputs.push_back({type});
  c.inputs.push_back(RandomFloats(type, random, positive));
}

inline KernelCase Named(const std::string& domain, const std::string& op) {
  KernelCase c;
  c.spec.domain = domain;
  c.spec.op = op;
  c.spec.name = "node";
  c.scalars.valid_samples = 1 << 20;
  return c;
}

inline std::string Int64s(const std::vector<int64_t>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int64_t));
}

}  // namespace pipec
