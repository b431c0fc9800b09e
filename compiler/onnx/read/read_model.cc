#include "compiler/onnx/read/read_model.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>

#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "compiler/onnx/read/check_names.h"
#include "compiler/onnx/read/count_nodes.h"
#include "compiler/onnx/read/nesting.h"
#include "onnx/defs/parser.h"
#include "onnx/defs/schema.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

// Messages in messages, and brackets in brackets.
constexpr int kMaxNesting = 100;

absl::Status Refuse(const std::string& path, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", why));
}

absl::StatusOr<onnx::ModelProto> ParseBinary(const std::string& path, std::ifstream& file) {
  google::protobuf::io::IstreamInputStream stream(&file);
  google::protobuf::io::CodedInputStream coded(&stream);
  coded.SetTotalBytesLimit(std::numeric_limits<int>::max());
  coded.SetRecursionLimit(kMaxNesting);
  onnx::ModelProto model;
  if (!model.ParseFromCodedStream(&coded) || !coded.ConsumedEntireMessage()) {
    return Refuse(path, absl::StrCat("is not an ONNX model, is truncated, or nests messages more than ",
                                     kMaxNesting, " deep"));
  }
  return model;
}

absl::StatusOr<onnx::ModelProto> ParseText(const std::string& path, std::ifstream& file) {
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  // The parser would take the first zero byte for the end.
  if (absl::StrContains(text, '\0')) return Refuse(path, "has a zero byte, which no text has");
  if (const int depth = DeepestNesting(text); depth > kMaxNesting) {
    return Refuse(path,
                  absl::StrCat("nests brackets ", depth, " deep, at most ", kMaxNesting, " are supported"));
  }
  onnx::ModelProto model;
  try {
    onnx::OnnxParser parser(text.c_str());
    const auto status = parser.Parse(model);
    if (!status.IsOK()) return Refuse(path, absl::StrReplaceAll(status.ErrorMessage(), {{"\n", " "}}));
    if (!parser.EndOfInput()) return Refuse(path, "has text after the end of the model");
  } catch (const std::exception& error) {
    return Refuse(path, absl::StrCat("is not ONNX text (a number out of range?): ", error.what()));
  }
  return model;
}

}  // namespace

std::string CanonicalDomain(const std::string& domain) { return domain == "ai.onnx" ? "" : domain; }

std::string FunctionKey(const std::string& domain, const std::string& name, const std::string& overload) {
  return absl::StrCat(CanonicalDomain(domain), "::", name, overload.empty() ? "" : ":", overload);
}

absl::StatusOr<Opsets> ReadOpsets(
    const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports) {
  const auto& known = onnx::OpSchemaRegistry::DomainToVersionRange::Instance().Map();
  Opsets opsets;
  for (const auto& import : imports) {
    const std::string domain = CanonicalDomain(import.domain());
    auto it = known.find(domain);
    if (it != known.end() && import.version() > it->second.second) {
      return absl::InvalidArgumentError(
          absl::StrCat("opset ", import.version(), " of domain '", domain.empty() ? "ai.onnx" : domain,
                       "' is newer than the newest known, ", it->second.second));
    }
    if (import.version() < 1 || import.version() > std::numeric_limits<int>::max()) {
      return absl::InvalidArgumentError(absl::StrCat("opset ", import.version(), " of domain '",
                                                     domain.empty() ? "ai.onnx" : domain,
                                                     "' does not exist"));
    }
    const int version = static_cast<int>(import.version());
    if (const auto [known_as, fresh] = opsets.try_emplace(domain, version);
        !fresh && known_as->second != version) {
      return absl::InvalidArgumentError(absl::StrCat("domain '", domain.empty() ? "ai.onnx" : domain,
                                                     "' is imported twice, as opset ", known_as->second,
                                                     " and ", version));
    }
  }
  return opsets;
}

absl::StatusOr<onnx::ModelProto> ReadModel(const std::string& path) {
  std::error_code error;
  const bool text = absl::EndsWith(path, ".onnxtxt");
  if (!text && !absl::EndsWith(path, ".onnx")) {
    return Refuse(path, "is neither .onnx (binary) nor .onnxtxt (ONNX text syntax)");
  }
  if (!std::filesystem::exists(path, error)) return absl::NotFoundError(absl::StrCat(path, ": no such file"));
  if (!std::filesystem::is_regular_file(path, error)) return Refuse(path, "is not a regular file");
  const uintmax_t size = std::filesystem::file_size(path, error);
  std::ifstream file(path, std::ios::binary);
  if (error || !file) return absl::NotFoundError(absl::StrCat(path, ": cannot be read"));
  if (size == 0) return Refuse(path, "is empty");
  if (size > std::numeric_limits<int>::max()) {
    return Refuse(path, "is above 2 GB; save the model with its weights as external data");
  }
  ASSIGN_OR_RETURN(onnx::ModelProto model, text ? ParseText(path, file) : ParseBinary(path, file));
  if (!model.has_ir_version() || !model.has_graph())
    return Refuse(path, "is not an ONNX model (no IR version or no graph)");
  if (model.ir_version() > onnx::Version::IR_VERSION) {
    return Refuse(path, absl::StrCat("has IR version ", model.ir_version(), ", newer than the newest known, ",
                                     static_cast<int>(onnx::Version::IR_VERSION)));
  }
  if (model.ir_version() < 1) return Refuse(path, absl::StrCat("has IR version ", model.ir_version()));
  absl::Status status = CheckNames(model);
  if (status.ok()) {
    const absl::StatusOr<int64_t> nodes = CountExpandedNodes(model);
    status = !nodes.ok() ? nodes.status()
             : *nodes > kMaxNodes
                 ? absl::InvalidArgumentError(absl::StrCat("the graph has ", *nodes,
                                                           " nodes once functions are expanded, at most ",
                                                           kMaxNodes, " are supported"))
                 : absl::OkStatus();
  }
  if (!status.ok()) return Refuse(path, status.message());
  return model;
}

}  // namespace pipec
