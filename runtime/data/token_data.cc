#include "runtime/data/token_data.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/counted.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

class TokenData : public DataSource {
 public:
  TokenData(MappedFile file, DType dtype, std::vector<DataInput> inputs, int64_t sequence, int64_t samples)
      : file_(std::move(file)),
        dtype_(dtype),
        inputs_(std::move(inputs)),
        sequence_(sequence),
        samples_(samples) {}

  int64_t samples() const override { return samples_; }
  absl::Status Read(int input, absl::Span<const int64_t> samples, std::byte* to) const override {
    // Rows of `sequence_` tokens, one further for labels, are an array [samples, sequence].
    const int64_t shift = inputs_[input].labels ? SizeOf(dtype_) : 0;
    GatherSamples(file_.bytes().data() + shift, dtype_, samples_, inputs_[input].type, 0, samples, to);
    return absl::OkStatus();
  }

 private:
  MappedFile file_;
  DType dtype_;
  std::vector<DataInput> inputs_;
  int64_t sequence_, samples_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DataSource>> OpenTokens(const std::string& path,
                                                       const std::vector<DataInput>& inputs,
                                                       TokenType tokens) {
  DType dtype;
  switch (tokens) {
    case TokenType::kU8:
      dtype = DType::kUint8;
      break;
    case TokenType::kU16:
      dtype = DType::kUint16;
      break;
    case TokenType::kU32:
      dtype = DType::kUint32;
      break;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("'", path, "' is a file of tokens: say how they are stored, --tokens=u8, u16 or u32"));
  }
  const DataInput *ids = nullptr, *labels = nullptr;
  for (const DataInput& input : inputs) {
    const DataInput*& place = input.labels ? labels : ids;
    const bool fits =
        input.type.dtype == DType::kInt64 && input.type.shape.size() == 2 && input.batch_axis == 0;
    if (!fits || place != nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("a file of tokens cannot feed the input '", input.name, "' (", ToString(input.type),
                       "): it feeds one int64 [batch, sequence] input and its labels; use an npz"));
    }
    place = &input;
  }
  if (ids == nullptr && labels == nullptr)
    return absl::InvalidArgumentError("the model has no input for tokens");
  const int64_t sequence = (ids != nullptr ? ids : labels)->type.shape[1];
  if (ids != nullptr && labels != nullptr && labels->type.shape[1] != sequence) {
    return absl::InvalidArgumentError(absl::StrCat("labels of ", labels->type.shape[1], " for sequences of ",
                                                   Counted(sequence, "token", "tokens"),
                                                   "; a file of tokens gives one label a token"));
  }
  ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  const int64_t bytes = static_cast<int64_t>(file.bytes().size());
  if (bytes % SizeOf(dtype) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "' has ", bytes, " bytes, not a multiple of ", SizeOf(dtype), " (--tokens)"));
  }
  const int64_t usable = bytes / SizeOf(dtype) - (labels != nullptr ? 1 : 0);
  const int64_t samples = sequence > 0 && usable > 0 ? usable / sequence : 0;
  return std::make_unique<TokenData>(std::move(file), dtype, inputs, sequence, samples);
}

}  // namespace pipec
