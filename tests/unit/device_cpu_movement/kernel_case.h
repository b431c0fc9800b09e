// One instruction on the CPU device in all the ways it may be launched: operands known at load or not, one
// thread or three, buffers at odd addresses, the result in an operand's place. All must give the same bytes,
// and none may take memory while it runs.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/cpu_device.h"

namespace pipec {

// Calls of operator new in this thread so far (allocation_test.cc).
int64_t Allocations();

struct Operand {
  TensorType type;
  std::string bytes;
  bool present = true;
};

// bool: a vector of uint8_t.
template <typename T>
Operand Values(DType dtype, const Shape& shape, const std::vector<T>& values) {
  Operand operand{{dtype, shape},
                  std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T))};
  EXPECT_EQ(operand.type.bytes(), static_cast<int64_t>(operand.bytes.size())) << ToString(operand.type);
  return operand;
}

inline Operand Int64s(const std::vector<int64_t>& values) {
  return Values<int64_t>(DType::kInt64, {static_cast<int64_t>(values.size())}, values);
}
inline Operand Absent() { return {{}, {}, false}; }

template <typename T>
std::vector<T> Elements(const std::string& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

class KernelCase {
 public:
  explicit KernelCase(absl::string_view op, absl::string_view domain = "") {
    spec_.op = std::string(op);
    spec_.domain = std::string(domain);
    spec_.name = "n";
  }
  KernelCase& Attr(absl::string_view name, Attribute value) {
    spec_.attributes.Set(name, std::move(value));
    return *this;
  }
  KernelCase& In(Operand operand) {
    spec_.inputs.push_back({operand.type, operand.present});
    inputs_.push_back(std::move(operand));
    return *this;
  }
  KernelCase& Out(DType dtype, const Shape& shape) {
    spec_.outputs.push_back({{dtype, shape}});
    return *this;
  }
  // Result 0 may lie where operand i lies.
  KernelCase& MayLieAt(int i) {
    places_.push_back(i);
    return *this;
  }

  // The results' bytes, the same in every way to launch; a failure of the test otherwise.
  std::vector<std::string> Run() const {
    absl::StatusOr<std::vector<std::string>> first = Launch({});
    if (!first.ok()) {
      ADD_FAILURE() << spec_.op << ": " << first.status();
      return std::vector<std::string>(spec_.outputs.size());
    }
    std::vector<Way> ways = {{.known = true}, {.threads = 3, .shift = 8}};
    for (int place : places_) ways.push_back({.place = place});
    for (const Way& way : ways) {
      absl::StatusOr<std::vector<std::string>> again = Launch(way);
      EXPECT_TRUE(again.ok()) << spec_.op << ": " << again.status();
      EXPECT_TRUE(again.ok() && *again == *first)
          << spec_.op << " differs: operands known " << way.known << ", " << way.threads
          << " threads, result at operand " << way.place;
    }
    return *first;
  }
  template <typename T>
  std::vector<T> Get() const {
    return Elements<T>(Run()[0]);
  }

  // What is wrong with it: found at load if operands are known there, and at the latest when it is launched.
  absl::Status Error(bool operands_known = false) const { return Launch({.known = operands_known}).status(); }

 private:
  struct Way {
    bool known = false;
    int threads = 1, shift = 0, place = -1;
  };

  absl::StatusOr<std::vector<std::string>> Launch(const Way& way) const {
    KernelSpec spec = spec_;
    std::vector<std::string> memory;
    std::vector<const void*> inputs;
    for (size_t k = 0; k < inputs_.size(); ++k) {
      memory.push_back(std::string(way.shift, '\x7f') + inputs_[k].bytes);
      if (way.known && inputs_[k].present) {
        spec.inputs[k].constant = reinterpret_cast<const std::byte*>(inputs_[k].bytes.data());
      }
    }
    for (const KernelOperand& output : spec.outputs)
      memory.push_back(std::string(way.shift + output.type.bytes(), '\x7f'));
    for (size_t k = 0; k < inputs_.size(); ++k) {
      inputs.push_back(inputs_[k].present ? memory[k].data() + way.shift : nullptr);
    }
    std::vector<void*> outputs;
    for (size_t k = 0; k < spec.outputs.size(); ++k)
      outputs.push_back(memory[inputs_.size() + k].data() + way.shift);
    if (way.place >= 0) outputs[0] = memory[way.place].data() + way.shift;

    std::unique_ptr<Device> device = MakeCpuDevice(way.threads);
    ASSIGN_OR_RETURN(std::unique_ptr<Stream> stream, device->NewStream());
    ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, device->Prepare(spec));
    std::vector<double> workspace(kernel->workspace_bytes() / sizeof(double) + 1);
    const StepScalars scalars;
    const int64_t before = Allocations();
    RETURN_IF_ERROR(kernel->Launch(*stream, {inputs.data(), outputs.data(), &scalars, workspace.data()}));
    EXPECT_EQ(Allocations(), before) << spec.op << " takes memory while it runs";
    std::vector<std::string> results;
    for (size_t k = 0; k < outputs.size(); ++k) {
      results.emplace_back(static_cast<const char*>(outputs[k]), spec.outputs[k].type.bytes());
    }
    return results;
  }

  KernelSpec spec_;
  std::vector<Operand> inputs_;
  std::vector<int> places_;
};

// Numbers that the type holds, small enough for exact products.
template <typename T>
std::vector<T> RandomValues(int64_t n, std::mt19937& random, double low = -9, double high = 9) {
  std::uniform_real_distribution<double> draw(std::is_unsigned_v<T> ? std::max(low, 0.0) : low, high);
  std::vector<T> values(n);
  for (T& value : values) value = static_cast<T>(draw(random));
  return values;
}

inline int64_t RandomInt(int64_t low, int64_t high, std::mt19937& random) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}

inline Shape RandomShape(int rank, int64_t low, int64_t high, std::mt19937& random) {
  Shape shape(rank);
  for (int64_t& dim : shape) dim = RandomInt(low, high, random);
  return shape;
}

// The coordinates of element `place` of a row-major tensor, and the other way round.
inline std::vector<int64_t> Coordinates(const Shape& shape, int64_t place) {
  std::vector<int64_t> at(shape.size());
  for (int i = static_cast<int>(shape.size()) - 1; i >= 0; --i) {
    at[i] = place % shape[i];
    place /= shape[i];
  }
  return at;
}
inline int64_t Place(const Shape& shape, const std::vector<int64_t>& at) {
  int64_t place = 0;
  for (size_t i = 0; i < shape.size(); ++i) place = place * shape[i] + at[i];
  return place;
}

// Where element `at` of a result comes from in an operand that was broadcast to it.
inline int64_t BroadcastPlace(const Shape& operand, const std::vector<int64_t>& at) {
  std::vector<int64_t> own(at.end() - operand.size(), at.end());
  for (size_t i = 0; i < operand.size(); ++i) own[i] = operand[i] == 1 ? 0 : own[i];
  return Place(operand, own);
}

}  // namespace pipec
