#include "tools/support/clean_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "llvm/Support/ConvertUTF.h"

namespace pipec {
namespace {

bool IsControl(absl::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return (first < 0x20 && first != '\n') || first == 0x7f;
  return first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0;  // U+0080 to U+009F
}

std::string Escape(absl::string_view text) {
  std::string clean;
  while (!text.empty()) {
    const auto* at = reinterpret_cast<const llvm::UTF8*>(text.data());
    size_t bytes = llvm::getNumBytesForUTF8(*at);
    const bool valid = bytes <= text.size() && llvm::isLegalUTF8Sequence(at, at + bytes);
    if (!valid) bytes = 1;
    const absl::string_view character = text.substr(0, bytes);
    if (valid && !IsControl(character)) {
      absl::StrAppend(&clean, character);
    } else {
      for (const char c : character) absl::StrAppendFormat(&clean, "\\x%02x", static_cast<unsigned char>(c));
    }
    text.remove_prefix(bytes);
  }
  return clean;
}

}  // namespace

std::string CleanText(absl::string_view text, size_t most) {
  if (text.size() <= most) return Escape(text);
  const size_t half = most / 2;
  return absl::StrCat(Escape(text.substr(0, half)), " [...] ", Escape(text.substr(text.size() - half)));
}

}  // namespace pipec
