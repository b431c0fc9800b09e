#include "compiler/onnx/read/check_names.h"

#include <algorithm>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

// Bytes of the UTF-8 character that `text` starts with; 0 if it starts with none, or with a control
// character.
size_t CharacterBytes(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return first < 0x20 || first == 0x7f ? 0 : 1;
  const size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < bytes) return 0;
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // U+0080 to U+009F are controls as well; then overlong forms, surrogates, and what is above U+10FFFF.
  const bool bad = (first == 0xc2 && byte(1) < 0xa0) || (first == 0xe0 && byte(1) < 0xa0) ||
                   (first == 0xed && byte(1) >= 0xa0) || (first == 0xf0 && byte(1) < 0x90) ||
                   (first == 0xf4 && byte(1) >= 0x90);
  return bad ? 0 : bytes;
}

absl::Status CheckName(absl::string_view what, const std::string& name) {
  const auto shown = [&] { return absl::CHexEscape(name.substr(0, 40)); };
  if (name.size() > kMaxNameBytes) {
    return absl::InvalidArgumentError(absl::StrCat("the name of ", what, " has ", name.size(),
                                                   " bytes, at most ", kMaxNameBytes,
                                                   " are accepted; it starts with '", shown(), "'"));
  }
  for (size_t at = 0; at < name.size();) {
    const size_t bytes = CharacterBytes(absl::string_view(name).substr(at));
    if (bytes == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the name of ", what, ", '", shown(), "', has a control character or is not UTF-8 at byte ", at));
    }
    at += bytes;
  }
  return absl::OkStatus();
}

absl::Status CheckAll(absl::string_view what, const google::protobuf::RepeatedPtrField<std::string>& names) {
  for (const std::string& name : names) RETURN_IF_ERROR(CheckName(what, name));
  return absl::OkStatus();
}

absl::Status CheckInfos(absl::string_view what,
                        const google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>& infos) {
  for (const auto& info : infos) {
    RETURN_IF_ERROR(CheckName(what, info.name()));
    for (const auto& dim : info.type().tensor_type().shape().dim()) {
      RETURN_IF_ERROR(CheckName("a dimension", dim.dim_param()));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckGraph(const onnx::GraphProto& graph);

absl::Status CheckAttributes(const google::protobuf::RepeatedPtrField<onnx::AttributeProto>& attributes) {
  for (const auto& attribute : attributes) {
    RETURN_IF_ERROR(CheckName("an attribute", attribute.name()));
    RETURN_IF_ERROR(CheckName("an attribute", attribute.ref_attr_name()));
    if (attribute.has_g()) RETURN_IF_ERROR(CheckGraph(attribute.g()));
    for (const auto& graph : attribute.graphs()) RETURN_IF_ERROR(CheckGraph(graph));
  }
  return absl::OkStatus();
}

absl::Status CheckNodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes) {
  for (const auto& node : nodes) {
    RETURN_IF_ERROR(CheckName("a node", node.name()));
    RETURN_IF_ERROR(CheckName("an op", node.op_type()));
    RETURN_IF_ERROR(CheckName("a domain", node.domain()));
    RETURN_IF_ERROR(CheckName("an overload", node.overload()));
    RETURN_IF_ERROR(CheckAll("an operand", node.input()));
    RETURN_IF_ERROR(CheckAll("a result", node.output()));
    RETURN_IF_ERROR(CheckAttributes(node.attribute()));
  }
  return absl::OkStatus();
}

absl::Status CheckGraph(const onnx::GraphProto& graph) {
  RETURN_IF_ERROR(CheckInfos("an input", graph.input()));
  RETURN_IF_ERROR(CheckInfos("an output", graph.output()));
  RETURN_IF_ERROR(CheckInfos("a value", graph.value_info()));
  for (const auto& tensor : graph.initializer()) RETURN_IF_ERROR(CheckName("an initializer", tensor.name()));
  for (const auto& tensor : graph.sparse_initializer()) {
    RETURN_IF_ERROR(CheckName("an initializer", tensor.values().name()));
  }
  return CheckNodes(graph.node());
}

absl::Status CheckOpsets(const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports) {
  for (const auto& import : imports) RETURN_IF_ERROR(CheckName("a domain", import.domain()));
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckNames(const onnx::ModelProto& model) {
  RETURN_IF_ERROR(CheckOpsets(model.opset_import()));
  RETURN_IF_ERROR(CheckGraph(model.graph()));
  for (const auto& function : model.functions()) {
    RETURN_IF_ERROR(CheckName("a function", function.name()));
    RETURN_IF_ERROR(CheckName("a domain", function.domain()));
    RETURN_IF_ERROR(CheckName("an overload", function.overload()));
    RETURN_IF_ERROR(CheckOpsets(function.opset_import()));
    RETURN_IF_ERROR(CheckAll("an input", function.input()));
    RETURN_IF_ERROR(CheckAll("an output", function.output()));
    RETURN_IF_ERROR(CheckAll("an attribute", function.attribute()));
    RETURN_IF_ERROR(CheckAttributes(function.attribute_proto()));
    RETURN_IF_ERROR(CheckNodes(function.node()));
  }
  return absl::OkStatus();
}

}  // namespace pipec
