#include "compiler/onnx/read_node.h"

#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ir/graph.h"
#include "compiler/onnx/normalize/normalize.h"
#include "compiler/onnx/order_nodes.h"
#include "compiler/onnx/read/attribute_proto.h"
#include "onnx/defs/schema.h"

namespace pipec {

absl::Status Annotate(const onnx::NodeProto& proto, const std::string& prefix, const Opsets& opsets,
                      const absl::Status& status) {
  if (status.ok()) return status;
  auto it = opsets.find(CanonicalDomain(proto.domain()));
  return absl::Status(
      status.code(),
      absl::StrCat(Describe(proto, prefix), it == opsets.end() ? "" : absl::StrCat(", opset ", it->second),
                   ": ", status.message()));
}

absl::Status CheckAgainstSchema(const onnx::NodeProto& proto, const Opsets& opsets, bool trusted) {
  const std::string domain = CanonicalDomain(proto.domain());
  const std::string shown = domain.empty() ? "ai.onnx" : domain;
  auto opset = opsets.find(domain);
  if (opset == opsets.end()) {
    return absl::InvalidArgumentError(absl::StrCat("domain '", shown, "' is not among the opset imports"));
  }
  if (domain == kPipecDomain) {
    return absl::InvalidArgumentError(
        absl::StrCat("domain '", domain, "' is of pipec's own ops, of which a model can only bring functions"));
  }
  const onnx::OpSchema* schema = onnx::OpSchemaRegistry::Schema(proto.op_type(), opset->second, domain);
  if (!schema) {
    const auto& known = onnx::OpSchemaRegistry::DomainToVersionRange::Instance().Map();
    const std::string what =
        absl::StrCat("unknown op ", proto.op_type(), " in domain '", shown, "', opset ", opset->second);
    return known.contains(domain) ? absl::InvalidArgumentError(what) : absl::UnimplementedError(what);
  }
  // A form deprecated as soon as it was published (GroupNormalization 18) is still in models.
  if (schema->deprecated() && domain.empty() && HasNewerForm(proto.op_type(), opset->second)) trusted = true;
  if (trusted) return absl::OkStatus();
  try {
    schema->Verify(proto);
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(error.what());
  }
  return absl::OkStatus();
}

absl::Status ReadAttributes(const onnx::NodeProto& proto, const AttributeBindings* bindings, bool has_bodies,
                            Attributes& attributes) {
  for (const auto& attribute : proto.attribute()) {
    const bool is_body = attribute.type() == onnx::AttributeProto::GRAPH ||
                         attribute.type() == onnx::AttributeProto::TYPE_PROTO;
    if (has_bodies && is_body) continue;
    if (!attribute.ref_attr_name().empty()) {
      if (!bindings)
        return absl::InvalidArgumentError(
            absl::StrCat("attribute ", attribute.name(), " refers to a function's, outside of one"));
      if (auto it = bindings->find(attribute.ref_attr_name()); it != bindings->end()) {
        attributes.Set(attribute.name(), it->second);
      }
      continue;
    }
    auto value = FromProto(attribute);
    if (!value.ok()) {
      return absl::Status(value.status().code(),
                          absl::StrCat("attribute ", attribute.name(), ": ", value.status().message()));
    }
    attributes.Set(attribute.name(), *std::move(value));
  }
  return absl::OkStatus();
}

}  // namespace pipec
