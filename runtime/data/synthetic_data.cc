#include "runtime/data/synthetic_data.h"

#include <cmath>
#include <cstring>
#include <numbers>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/small_floats.h"
#include "runtime/data/sample_order.h"

namespace pipec {
namespace {

double Uniform(uint64_t bits) { return (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53; }

// Box and Muller, 1958.
double Normal(uint64_t key, uint64_t element) {
  const double u = Uniform(Mix(key ^ (2 * element))), v = Uniform(Mix(key ^ (2 * element + 1)));
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

template <typename T>
void Store(std::byte* to, int64_t index, T value) {
  std::memcpy(to + index * sizeof(T), &value, sizeof(T));
}

class SyntheticData : public DataSource {
 public:
  SyntheticData(std::vector<DataInput> inputs, int64_t samples, uint64_t seed)
      : inputs_(std::move(inputs)), samples_(samples) {
    for (const DataInput& input : inputs_) {
      uint64_t key = Mix(seed);
      for (char c : input.name) key = Mix(key ^ static_cast<unsigned char>(c));
      keys_.push_back(key);
    }
  }

  int64_t samples() const override { return samples_; }

  absl::Status Read(int input, absl::Span<const int64_t> samples, std::byte* to) const override {
    const DataInput& row = inputs_[input];
    const absl::Span<const int64_t> shape(row.type.shape);
    const bool batched = row.batch_axis >= 0;
    const int64_t outer = batched ? NumElements(shape.first(row.batch_axis)) : 1;
    const int64_t inner = batched ? NumElements(shape.subspan(row.batch_axis + 1)) : row.type.elements();
    const int64_t count = batched ? static_cast<int64_t>(samples.size()) : 1;
    int64_t at = 0;
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t s = 0; s < count; ++s) {
        const int64_t sample = batched ? samples[s] : 0;
        const uint64_t key = Mix(keys_[input] ^ static_cast<uint64_t>(sample));
        for (int64_t i = 0; i < inner; ++i, ++at) {
          if (!Write(row, key, o * inner + i, sample < 0, to, at)) {
            return absl::UnimplementedError(
                absl::StrCat("no synthetic data for the input '", row.name, "' (", ToString(row.type), ")"));
          }
        }
      }
    }
    return absl::OkStatus();
  }

 private:
  static bool Write(const DataInput& row, uint64_t key, uint64_t element, bool padding, std::byte* to,
                    int64_t at) {
    if (IsFloat(row.type.dtype)) {
      const double value = padding ? 0 : Normal(key, element);
      if (row.type.dtype == DType::kFloat32) return Store(to, at, static_cast<float>(value)), true;
      if (row.type.dtype == DType::kFloat64) return Store(to, at, value), true;
      if (row.type.dtype == DType::kFloat16) return Store(to, at, ToFloat16(value)), true;
      return Store(to, at, ToBFloat16(value)), true;
    }
    const uint64_t bound = row.bound > 0 ? row.bound : 2;
    const uint64_t value = padding ? 0 : Mix(key ^ element) % bound;
    switch (SizeOf(row.type.dtype)) {
      case 1:
        return Store(to, at, static_cast<uint8_t>(value)), true;
      case 2:
        return Store(to, at, static_cast<uint16_t>(value)), true;
      case 4:
        return Store(to, at, static_cast<uint32_t>(value)), true;
      case 8:
        return Store(to, at, value), true;
      default:
        return false;
    }
  }

  std::vector<DataInput> inputs_;
  std::vector<uint64_t> keys_;
  int64_t samples_;
};

}  // namespace

std::unique_ptr<DataSource> MakeSyntheticData(const std::vector<DataInput>& inputs, int64_t samples,
                                              uint64_t seed) {
  return std::make_unique<SyntheticData>(inputs, samples, seed);
}

}  // namespace pipec
