#include "runtime/data/npy.h"

#include <cctype>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status.h"
#include "runtime/base/tiny_types.h"

namespace pipec {
namespace {

constexpr absl::string_view kMagic("\x93NUMPY", 6);

struct Descr {
  const char* text;
  DType dtype;
};
// NumPy has no bfloat16 of its own: the package ml_dtypes adds it, and saves it as two bytes of anything. Which
// of its types of one byte an array was of, the file does not say.
constexpr Descr kDescrs[] = {
    {"<f4", DType::kFloat32},  {"<f8", DType::kFloat64},  {"<f2", DType::kFloat16}, {"|b1", DType::kBool},
    {"|i1", DType::kInt8},     {"<i2", DType::kInt16},    {"<i4", DType::kInt32},   {"<i8", DType::kInt64},
    {"|u1", DType::kUint8},    {"<u2", DType::kUint16},   {"<u4", DType::kUint32},  {"<u8", DType::kUint64},
    {"<V2", DType::kBFloat16}, {"|V2", DType::kBFloat16}, {"|V1", DType::kUint8},   {"<V1", DType::kUint8},
};

absl::Status Bad(absl::string_view what) { return absl::InvalidArgumentError(std::string(what)); }

// Reads the one kind of Python literal that stands in a header: {'descr': '<f4', 'fortran_order': False,
// 'shape': (2, 3), }.
class HeaderReader {
 public:
  explicit HeaderReader(absl::string_view text) : text_(text) {}

  absl::StatusOr<TensorType> Read() {
    TensorType type;
    bool has_descr = false, has_order = false, has_shape = false;
    if (!Take('{')) return Malformed();
    while (!Take('}')) {
      std::string key;
      if (!TakeString(&key) || !Take(':')) return Malformed();
      if (key == "descr" && !has_descr) {
        has_descr = true;
        std::string descr;
        if (!TakeString(&descr)) return Bad("structured arrays are not read; use one array a field");
        for (const Descr& row : kDescrs) {
          if (descr == row.text) type.dtype = row.dtype;
        }
        if (type.dtype == DType::kUndefined) {
          return Bad(absl::StrCat("arrays of NumPy type '", absl::CHexEscape(descr),
                                  "' are not read (object arrays, text and big-endian numbers are not)"));
        }
      } else if (key == "fortran_order" && !has_order) {
        has_order = true;
        if (TakeWord("True")) return Bad("the array is in Fortran order; save numpy.ascontiguousarray of it");
        if (!TakeWord("False")) return Malformed();
      } else if (key == "shape" && !has_shape) {
        has_shape = true;
        if (!TakeShape(&type.shape)) return Malformed();
      } else {
        return Malformed();
      }
      if (!Take(',') && !Peek('}')) return Malformed();
    }
    Skip();
    if (!has_descr || !has_order || !has_shape || !text_.empty()) return Malformed();
    return type;
  }

 private:
  static absl::Status Malformed() { return Bad("the npy header is malformed"); }
  void Skip() { text_ = absl::StripLeadingAsciiWhitespace(text_); }
  bool Peek(char c) {
    Skip();
    return !text_.empty() && text_.front() == c;
  }
  bool Take(char c) {
    if (!Peek(c)) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool TakeWord(absl::string_view word) {
    Skip();
    if (text_.substr(0, word.size()) != word) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  bool TakeString(std::string* value) {
    const char quote = Peek('"') ? '"' : '\'';
    if (!Take(quote)) return false;
    const size_t end = text_.find(quote);
    if (end == absl::string_view::npos) return false;
    *value = std::string(text_.substr(0, end));
    text_.remove_prefix(end + 1);
    return true;
  }
  bool TakeShape(Shape* shape) {
    if (!Take('(')) return false;
    while (!Take(')')) {
      Skip();
      size_t digits = 0;
      while (digits < text_.size() && std::isdigit(static_cast<unsigned char>(text_[digits]))) ++digits;
      int64_t dim;
      if (digits == 0 || shape->size() >= 32 || !absl::SimpleAtoi(text_.substr(0, digits), &dim))
        return false;
      text_.remove_prefix(digits);
      shape->push_back(dim);
      if (!Take(',') && !Peek(')')) return false;
    }
    return true;
  }

  absl::string_view text_;
};

}  // namespace

absl::StatusOr<HostArray> ParseNpy(absl::string_view file, std::shared_ptr<const void> owner) {
  if (file.substr(0, kMagic.size()) != kMagic || file.size() < 10) return Bad("not an npy array");
  const int major = static_cast<unsigned char>(file[6]);
  if (major < 1 || major > 3) return Bad(absl::StrCat("npy version ", major, ", versions 1 to 3 are read"));
  const size_t width = major == 1 ? 2 : 4;
  uint32_t length = 0;
  if (file.size() < 8 + width) return Bad("truncated in its header");
  std::memcpy(&length, file.data() + 8, width);
  if (length > file.size() - 8 - width) return Bad("truncated in its header");
  HostArray array;
  ASSIGN_OR_RETURN(array.type, HeaderReader(file.substr(8 + width, length)).Read());
  array.bytes = file.substr(8 + width + length);
  int64_t bytes = SizeOf(array.type.dtype);
  bool overflow = false, empty = false;
  for (int64_t dim : array.type.shape) {
    empty |= dim == 0;
    overflow |= __builtin_mul_overflow(bytes, dim, &bytes);
  }
  if (empty) bytes = 0;
  if ((overflow && !empty) || bytes != static_cast<int64_t>(array.bytes.size())) {
    return Bad(absl::StrCat("has ", array.bytes.size(), " bytes, which are not those of ",
                            Name(array.type.dtype), ToString(array.type.shape)));
  }
  array.owner = std::move(owner);
  return array;
}

absl::StatusOr<std::string> NpyHeader(const TensorType& type) {
  DType dtype = type.dtype;
  if (IsTiny(dtype)) dtype = dtype == DType::kInt4 || dtype == DType::kInt2 ? DType::kInt8 : DType::kUint8;
  const char* descr = nullptr;
  for (const Descr& row : kDescrs) {
    if (row.dtype == dtype && descr == nullptr) descr = row.text;
  }
  if (descr == nullptr) return Bad(absl::StrCat("NumPy has no type ", Name(type.dtype)));
  std::string dict = absl::StrCat("{'descr': '", descr, "', 'fortran_order': False, 'shape': (",
                                  absl::StrJoin(type.shape, ", "), type.shape.size() == 1 ? ",), }" : "), }");
  dict.append((64 - (10 + dict.size() + 1) % 64) % 64, ' ');
  dict += '\n';
  std::string header(kMagic);
  header += '\x01';
  header += '\x00';
  header += static_cast<char>(dict.size() & 0xff);
  header += static_cast<char>(dict.size() >> 8);
  return header + dict;
}

}  // namespace pipec
