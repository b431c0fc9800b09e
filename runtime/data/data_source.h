// Where the samples come from: arrays, tokens, or a seeded generator. Const calls may come from several
// threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/base/tensor_type.h"

namespace pipec {

// An input of the model that some rank of this process needs.
struct DataInput {
  std::string name;
  TensorType type;     // of one microbatch
  int batch_axis = 0;  // -1: the same for every microbatch
  int64_t bound = 0;   // integers lie in [0, bound); 0: not known
  bool labels = false;
};

class DataSource {
 public:
  virtual ~DataSource() = default;
  virtual int64_t samples() const = 0;
  // Writes one microbatch of input `input` (its place in the list the source was opened with): the given
  // samples along the batch axis, zeros for entries of -1. `samples` is as long as the batch axis (ignored if
  // there is none).
  virtual absl::Status Read(int input, absl::Span<const int64_t> samples, std::byte* to) const = 0;
};

enum class TokenType { kNone, kU8, kU16, kU32 };

struct DataOptions {
  TokenType tokens = TokenType::kNone;  // of a .bin file
  uint64_t seed = 0;                    // of synthetic data
  int64_t synthetic_samples = 0;
};

// PATH is .npz, .safetensors, a folder of .npy, .bin tokens, or "synthetic". Errors name the file, the input,
// what it is and what it should be.
absl::StatusOr<std::unique_ptr<DataSource>> OpenData(const std::string& path,
                                                     const std::vector<DataInput>& inputs,
                                                     const DataOptions& options);

// Rows of an array, laid out as a microbatch: `array` has the shape of `type` but for its batch axis; element
// types may differ by a widening of integers. -1: zeros.
void GatherSamples(const char* array, DType array_dtype, int64_t array_samples, const TensorType& type,
                   int batch_axis, absl::Span<const int64_t> samples, std::byte* to);

// Whether every value of `from` is one of `to`: the same type, or integers that widen.
bool Widens(DType from, DType to);

}  // namespace pipec
