// What makers of random instructions draw from.
#pragma once

#include <cstdint>
#include <initializer_list>
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

// Any type that takes whole bytes.
inline DType AnyType(Random& random) {
  constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16,
                              DType::kInt64,   DType::kInt32,   DType::kInt16,   DType::kInt8,
                              DType::kUint8,   DType::kBool};
  return kTypes[Draw(random, 0, 9)];
}
// A float, more often than not, or an integer.
inline DType AnyNumber(Random& random) {
  constexpr DType kIntegers[] = {DType::kInt64, DType::kInt32, DType::kInt8, DType::kUint8};
  return Draw(random, 0, 2) ? AnyFloat(random) : kIntegers[Draw(random, 0, 3)];
}

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
  c.inputs.push_back(RandomContents(type, random, positive));
}

inline KernelCase Named(const std::string& domain, const std::string& op) {
  KernelCase c;
  c.spec.domain = domain;
  c.spec.op = op;
  c.spec.name = "node";
  c.scalars.valid_samples = 1 << 20;
  return c;
}

// An operand of int64 that is known at load.
inline void AddConstant(KernelCase& c, const std::vector<int64_t>& values) {
  c.constants.push_back(static_cast<int>(c.inputs.size()));
  c.spec.inputs.push_back({{DType::kInt64, {static_cast<int64_t>(values.size())}}});
  c.inputs.emplace_back(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int64_t));
}

// A shape that others of its size broadcast with: some of its dimensions 1, the first ones perhaps left out.
inline Shape Narrowed(const Shape& shape, Random& random) {
  Shape own = shape;
  for (int64_t& dim : own) {
    if (Draw(random, 0, 3) == 0) dim = 1;
  }
  if (Draw(random, 0, 3) == 0 && !own.empty())
    own.erase(own.begin(), own.begin() + Draw(random, 0, static_cast<int64_t>(own.size())));
  return own;
}
// What shapes broadcast to.
inline Shape Together(const std::vector<Shape>& shapes) {
  Shape result;
  for (const Shape& own : shapes) {
    while (result.size() < own.size()) result.insert(result.begin(), 1);
    for (size_t i = 0; i < own.size(); ++i) {
      int64_t& dim = result[result.size() - own.size() + i];
      if (own[i] != 1) dim = own[i];
    }
  }
  return result;
}

inline std::string Int64s(const std::vector<int64_t>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int64_t));
}

// More often than not, of an op that computes in float32: these operands, and the result, cast by the op itself from
// and to one type of 16 bits, each or not.
inline void DrawOwnCasts(KernelCase& c, DType dtype, std::initializer_list<int> operands, bool result,
                         Random& random) {
  if (dtype != DType::kFloat32 || !Draw(random, 0, 3)) return;
  const DType small = Draw(random, 0, 1) ? DType::kBFloat16 : DType::kFloat16;
  for (const int k : operands) {
    if (!Draw(random, 0, 3)) continue;
    c.spec.inputs[k].type.dtype = small;
    c.inputs[k] = RandomContents(c.spec.inputs[k].type, random);
  }
  if (result && Draw(random, 0, 3)) c.spec.outputs[0].type.dtype = small;
  c.spec.attributes.Set("to", static_cast<int64_t>(result ? c.spec.outputs[0].type.dtype : DType::kFloat32));
  c.in_place.clear();
}

}  // namespace pipec
