// One instruction run on the CPU device, for tests: operands in, results out, all in buffers of exactly their
// size.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/status.h"
#include "runtime/device/cpu/cpu_device.h"

namespace pipec {

inline constexpr char kHelpers[] = "ai.pipec";

struct Tensor {
  TensorType type;
  std::vector<std::byte> bytes;
};

// f(pointer to the elements, in the C++ type of `dtype`).
template <typename F>
void WithElements(DType dtype, const void* data, F f) {
  void* p = const_cast<void*>(data);
  switch (dtype) {
    case DType::kFloat32:
      return f(static_cast<float*>(p));
    case DType::kFloat64:
      return f(static_cast<double*>(p));
    case DType::kInt32:
      return f(static_cast<int32_t*>(p));
    case DType::kInt64:
      return f(static_cast<int64_t*>(p));
    case DType::kInt8:
      return f(static_cast<int8_t*>(p));
    case DType::kUint8:
      return f(static_cast<uint8_t*>(p));
    case DType::kBool:
      return f(static_cast<bool*>(p));
    default:
      FAIL() << "the tests have no such elements";
  }
}

inline Tensor Make(DType dtype, Shape shape, const std::vector<double>& values) {
  Tensor tensor{{dtype, std::move(shape)}, {}};
  EXPECT_EQ(tensor.type.elements(), static_cast<int64_t>(values.size()));
  tensor.bytes.resize(tensor.type.bytes());
  WithElements(dtype, tensor.bytes.data(), [&](auto* p) {
    for (size_t i = 0; i < values.size(); ++i)
      p[i] = static_cast<std::remove_pointer_t<decltype(p)>>(values[i]);
  });
  return tensor;
}

inline std::vector<double> Values(const Tensor& tensor) {
  std::vector<double> values(tensor.type.elements());
  WithElements(tensor.type.dtype, tensor.bytes.data(), [&](auto* p) {
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(p[i]);
  });
  return values;
}

inline std::vector<double> RandomValues(int64_t n, int seed, double low = -2, double high = 2) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> draw(low, high);  // so that float32 holds them exactly
  std::vector<double> values(n);
  for (double& value : values) value = draw(generator);
  return values;
}

inline Tensor Random(DType dtype, const Shape& shape, int seed, double low = -2, double high = 2) {
  return Make(dtype, shape, RandomValues(NumElements(shape), seed, low, high));
}

class KernelCall {
 public:
  KernelCall(absl::string_view op, absl::string_view domain)
      : spec_{.op = std::string(op), .domain = std::string(domain), .name = "n"} {
    scalars.valid_samples = int64_t{1} << 40;
  }
  KernelCall& Attr(absl::string_view name, Attribute value) {
    spec_.attributes.Set(name, std::move(value));
    return *this;
  }
  KernelCall& In(Tensor tensor) {
    spec_.inputs.push_back({tensor.type});
    inputs_.push_back(std::move(tensor));
    return *this;
  }
  KernelCall& NoIn() {
    spec_.inputs.push_back({{}, false});
    inputs_.emplace_back();
    return *this;
  }
  KernelCall& Out(DType dtype, const Shape& shape) {
    spec_.outputs.push_back({{dtype, shape}});
    in_place_.push_back(-1);
    return *this;
  }
  KernelCall& NoOut() {
    spec_.outputs.push_back({{}, false});
    in_place_.push_back(-1);
    return *this;
  }
  // The last output lies where input i lies.
  KernelCall& At(int i) {
    in_place_.back() = i;
    return *this;
  }
  // Buffers begin `bytes` behind an address that is aligned to 64.
  KernelCall& Misalign(int bytes) {
    misalign_ = bytes;
    return *this;
  }
  KernelCall& Threads(int threads) {
    threads_ = threads;
    return *this;
  }

  absl::StatusOr<std::vector<Tensor>> Run() const {
    std::unique_ptr<Device> device = MakeCpuDevice(threads_);
    ASSIGN_OR_RETURN(std::unique_ptr<Stream> stream, device->NewStream());
    ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, device->Prepare(spec_));
    std::vector<Buffer> buffers;
    buffers.reserve(inputs_.size() + spec_.outputs.size() + 1);
    std::vector<const void*> inputs;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      buffers.emplace_back(inputs_[i].bytes.size(), misalign_);
      std::copy(inputs_[i].bytes.begin(), inputs_[i].bytes.end(), buffers.back().data());
      inputs.push_back(spec_.inputs[i].present ? buffers.back().data() : nullptr);
    }
    std::vector<void*> outputs;
    for (size_t k = 0; k < spec_.outputs.size(); ++k) {
      if (!spec_.outputs[k].present) {
        outputs.push_back(nullptr);
      } else if (in_place_[k] >= 0) {
        outputs.push_back(const_cast<void*>(inputs[in_place_[k]]));
      } else {
        buffers.emplace_back(spec_.outputs[k].type.bytes(), misalign_);
        std::memset(buffers.back().data(), 0x7f,
                    spec_.outputs[k].type.bytes());  // what must not shine through
        outputs.push_back(buffers.back().data());
      }
    }
    Buffer workspace(kernel->workspace_bytes(), 0);
    RETURN_IF_ERROR(kernel->Launch(*stream, {inputs.data(), outputs.data(), &scalars, workspace.data(),
                                              scalars.microbatch == 0}));
    std::vector<Tensor> results(outputs.size());
    for (size_t k = 0; k < outputs.size(); ++k) {
      if (outputs[k] == nullptr) continue;
      results[k].type = spec_.outputs[k].type;
      const auto* bytes = static_cast<const std::byte*>(outputs[k]);
      results[k].bytes.assign(bytes, bytes + results[k].type.bytes());
    }
    return results;
  }

  // Result k of a call that must succeed.
  std::vector<double> Get(int k = 0) const {
    absl::StatusOr<std::vector<Tensor>> results = Run();
    if (!results.ok()) {
      ADD_FAILURE() << spec_.op << ": " << results.status();
      return {};
    }
    return Values((*results)[k]);
  }
  // All results, byte for byte.
  std::string Bytes() const {
    absl::StatusOr<std::vector<Tensor>> results = Run();
    EXPECT_TRUE(results.ok()) << spec_.op << ": " << results.status();
    std::string all;
    for (const Tensor& result : *results) {
      all.append(reinterpret_cast<const char*>(result.bytes.data()), result.bytes.size());
    }
    return all;
  }
  std::string Error() const { return std::string(Run().status().message()); }

  StepScalars scalars;

 private:
  // Heap memory that ends with the last byte, so that a sanitizer sees the first byte too many.
  class Buffer {
   public:
    Buffer(int64_t bytes, int misalign)
        : misalign_(misalign),
          memory_(static_cast<std::byte*>(::operator new (bytes + misalign, std::align_val_t{64})),
                  [](std::byte* p) { ::operator delete (p, std::align_val_t{64}); }) {}
    std::byte* data() { return memory_.get() + misalign_; }

   private:
    int misalign_;
    std::unique_ptr<std::byte, void (*)(std::byte*)> memory_;
  };

  KernelSpec spec_;
  std::vector<Tensor> inputs_;
  std::vector<int> in_place_;
  int misalign_ = 0, threads_ = 1;
};

// |got - wanted| <= tolerance * max(1, |wanted|), element by element.
inline void ExpectNear(const std::vector<double>& got, const std::vector<double>& wanted, double tolerance,
                       absl::string_view what = "") {
  ASSERT_EQ(got.size(), wanted.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], wanted[i], tolerance * std::max(1.0, std::abs(wanted[i]))) << what << " at " << i;
  }
}

inline double Tolerance(DType dtype) { return dtype == DType::kFloat32 ? 2e-5 : 1e-12; }

// The gradient of f at x by central differences.
inline std::vector<double> NumericGradient(const std::function<double(const std::vector<double>&)>& f,
                                           std::vector<double> x) {
  std::vector<double> gradient(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double at = x[i], h = 1e-5;
    x[i] = at + h;
    const double above = f(x);
    x[i] = at - h;
    gradient[i] = (above - f(x)) / (2 * h);
    x[i] = at;
  }
  return gradient;
}

}  // namespace pipec
