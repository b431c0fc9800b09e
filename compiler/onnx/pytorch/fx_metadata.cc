#include "compiler/onnx/pytorch/fx_metadata.h"

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace pipec {
namespace {

constexpr absl::string_view kCall = "pkg.torch.onnx.fx_node";
constexpr absl::string_view kScopes = "pkg.torch.onnx.name_scopes";

// What stands between the first `open` and the next `close`.
absl::string_view Between(absl::string_view text, absl::string_view open, absl::string_view close) {
  const size_t begin = text.find(open);
  if (begin == absl::string_view::npos) return "";
  text.remove_prefix(begin + open.size());
  return text.substr(0, text.find(close));
}

std::string NameOf(absl::string_view argument) {
  argument = absl::StripAsciiWhitespace(argument);
  return absl::ConsumePrefix(&argument, "%") ? std::string(argument) : "";
}

// The arguments behind "args = (", up to the bracket that closes them; commas inside brackets do not divide.
std::vector<absl::string_view> Arguments(absl::string_view call) {
  constexpr absl::string_view kOpen = "args = (";
  std::vector<absl::string_view> arguments;
  size_t begin = call.find(kOpen);
  if (begin == absl::string_view::npos) return arguments;
  begin += kOpen.size();
  int depth = 0;
  for (size_t i = begin; i < call.size(); ++i) {
    const char c = call[i];
    if (c == '(' || c == '[' || c == '{') ++depth;
    const bool ends = depth == 0 && (c == ')' || c == ',');
    if (c == ')' || c == ']' || c == '}') --depth;
    if (!ends) continue;
    arguments.push_back(absl::StripAsciiWhitespace(call.substr(begin, i - begin)));
    begin = i + 1;
    if (c == ')') break;
  }
  return arguments;
}

}  // namespace

FxSignature ParseSignature(absl::string_view text) {
  FxSignature signature;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(": ", 1));
    const bool parameter = absl::StartsWith(parts.second, "PARAMETER ");
    const bool buffer = absl::StartsWith(parts.second, "BUFFER ");
    const absl::string_view target = Between(parts.second, "target='", "'");
    if ((!parameter && !buffer) || target.empty()) continue;
    signature[parts.first] = {std::string(target), parameter,
                              parameter || absl::StrContains(parts.second, "persistent=True")};
  }
  return signature;
}

FxCall CallOf(const onnx::NodeProto& node) {
  FxCall call;
  for (const auto& entry : node.metadata_props()) {
    if (entry.key() == kCall) {
      const absl::string_view text = entry.value();
      call.result = std::string(Between(text, "%", " "));
      call.target = std::string(Between(text, "target=torch.ops.", "]"));
      for (absl::string_view argument : Arguments(text)) {
        std::vector<std::string> list;
        call.arguments.push_back(NameOf(argument));
        if (absl::ConsumePrefix(&argument, "[") && absl::ConsumeSuffix(&argument, "]")) {
          for (absl::string_view item : absl::StrSplit(argument, ',')) list.push_back(NameOf(item));
        }
        call.lists.push_back(std::move(list));
      }
    } else if (entry.key() == kScopes) {
      // ['', 'model', 'model.fc', 'linear']: modules from the outermost, then the call.
      const std::vector<absl::string_view> scopes = absl::StrSplit(entry.value(), '\'');
      if (scopes.size() >= 5) call.module = std::string(scopes[scopes.size() - 4]);
    }
  }
  return call;
}

}  // namespace pipec
