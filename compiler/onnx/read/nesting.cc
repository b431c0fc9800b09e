#include "compiler/onnx/read/nesting.h"

#include <algorithm>

namespace pipec {

int DeepestNesting(absl::string_view text) {
  int depth = 0, deepest = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    switch (text[i]) {
      case '"':
        for (++i; i < text.size() && text[i] != '"'; ++i) {
          if (text[i] == '\\') ++i;
        }
        break;
      case '#':
        while (i < text.size() && text[i] != '\n') ++i;
        break;
      case '=':
        if (i + 1 < text.size() && text[i + 1] == '>') ++i;
        break;
      case '(':
      case '[':
      case '{':
      case '<':
        deepest = std::max(deepest, ++depth);
        break;
      case ')':
      case ']':
      case '}':
      case '>':
        depth = std::max(depth - 1, 0);
        break;
      default:
        break;
    }
  }
  return deepest;
}

}  // namespace pipec
