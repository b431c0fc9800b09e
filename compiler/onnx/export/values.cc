#include "compiler/onnx/export/values.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/onnx/export/stages.h"
#include "compiler/onnx/read/attribute_proto.h"
#include "compiler/onnx/schema/function_body.h"
#include "compiler/onnx/schema/schema_context.h"
#include "onnx/defs/schema.h"

namespace pipec {
namespace {

// As the model stores it: a weight in 16-bit floats may be float32 in the graph.
TensorType StoredType(const Value& value) {
  const bool widened = value.data.stored != DType::kUndefined;
  return {widened ? value.data.stored : value.type.dtype, value.type.shape};
}

bool HasContents(const Value& value) { return value.data.bytes || value.data.file; }

bool IsTensor(const Value& value) {
  return value.kind() == ValueKind::kParameter || value.kind() == ValueKind::kConstant;
}

uint64_t Aligned(uint64_t offset) { return (offset + 63) / 64 * 64; }

// Constants as small as these are attributes rather than data: axes, shapes.
constexpr int64_t kSmall = 1024;

bool LiesInFile(const Value& value) {
  return IsTensor(value) && HasContents(value) &&
         (value.kind() == ValueKind::kParameter || value.type.bytes() > kSmall);
}

template <typename T>
std::string BytesOf(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

void AddDomain(absl::string_view domain, std::map<std::string, int>& domains) {
  const std::string name = domain == "ai.onnx" ? "" : std::string(domain);
  domains.try_emplace(name, NewestOpset(name));
}

}  // namespace

ModelData PlaceModelData(const Module& module, std::string file) {
  ModelData data{std::move(file)};
  uint64_t zeros = 0;
  for (const Value* value : module.graph.Values()) {
    if (LiesInFile(*value)) {
      data.tensors.push_back({value, data.bytes});
      data.bytes = Aligned(data.bytes + StoredType(*value).bytes());
    } else if (value->kind() == ValueKind::kAccumulator || value->kind() == ValueKind::kState) {
      zeros = std::max<uint64_t>(zeros, value->type.bytes());
    }
  }
  data.zeros = data.bytes;
  data.bytes += zeros;
  return data;
}

void SetExternal(onnx::TensorProto& proto, absl::string_view location, uint64_t offset, uint64_t length) {
  proto.clear_raw_data();
  proto.clear_float_data();
  proto.clear_double_data();
  proto.clear_int32_data();
  proto.clear_int64_data();
  proto.clear_uint64_data();
  proto.clear_external_data();
  proto.set_data_location(onnx::TensorProto::EXTERNAL);
  auto add = [&](const char* key, std::string value) {
    auto* entry = proto.add_external_data();
    entry->set_key(key);
    entry->set_value(std::move(value));
  };
  add("location", std::string(location));
  add("offset", absl::StrCat(offset));
  add("length", absl::StrCat(length));
}

void AddInfo(const Value& value, const std::string& name,
             google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>& list) {
  auto& info = *list.Add();
  info.set_name(name);
  *info.mutable_type() = ToProto(value.type);
}

void AddTensor(const Value& value, const ExportOptions& options, onnx::GraphProto& graph) {
  if (!HasContents(value)) return AddInfo(value, value.name(), *graph.mutable_input());
  const TensorType stored = StoredType(value);
  const bool widened = stored.dtype != value.type.dtype;
  onnx::TensorProto& proto = *graph.add_initializer();
  proto = ToProto(stored, value.data.bytes ? absl::string_view(*value.data.bytes) : "");
  proto.set_name(widened ? absl::StrCat(value.name(), "/", Name(stored.dtype)) : value.name());
  if (options.data && LiesInFile(value)) {
    for (const auto& [other, offset] : options.data->tensors) {
      if (other == &value) SetExternal(proto, options.data->file, offset, stored.bytes());
    }
  } else if (value.data.file) {
    SetExternal(proto, *value.data.file, value.data.offset, value.data.length);
  }
  if (!widened) return;
  onnx::NodeProto& cast = *graph.add_node();
  cast = OneOutput("Cast", {proto.name()}, value.name());
  SetInt("to", static_cast<int64_t>(value.type.dtype), cast);
}

void AddZeros(const Value& value, const ExportOptions& options, onnx::GraphProto& graph) {
  AddInfo(value, value.name(), *graph.mutable_input());
  onnx::TensorProto& proto = *graph.add_initializer();
  proto = ToProto(value.type, options.data ? "" : std::string(value.type.bytes(), '\0'));
  proto.set_name(value.name());
  if (options.data) SetExternal(proto, options.data->file, options.data->zeros, value.type.bytes());
}

void AddScalar(const std::string& name, double value, onnx::GraphProto& graph) {
  const bool counts = name == "seed" || name == "step" || name == "updates" || name == "first_sample";
  const TensorType type{counts ? DType::kInt64 : DType::kFloat64, {}};
  auto& input = *graph.add_input();
  input.set_name(name);
  *input.mutable_type() = ToProto(type);
  onnx::TensorProto& proto = *graph.add_initializer();
  proto = ToProto(type, counts ? BytesOf(static_cast<int64_t>(value)) : BytesOf(value));
  proto.set_name(name);
}

std::vector<std::string> RunTimeScalarsOf(const Node& node) {
  return node.domain() == kPipecDomain ? RunTimeScalars(node.op()) : std::vector<std::string>{};
}

onnx::NodeProto NodeToProto(const Node& node, HelperFunctions& functions) {
  if (node.domain() == kPipecDomain && HasBody(node.op())) return functions.Call(node);
  const onnx::OpSchema* schema = onnx::OpSchemaRegistry::Schema(node.op(), node.domain());
  onnx::NodeProto proto;
  proto.set_name(node.name());
  proto.set_op_type(node.op());
  proto.set_domain(node.domain());
  for (const Value* input : node.inputs()) proto.add_input(input ? input->name() : "");
  for (const Value* output : node.outputs()) proto.add_output(output ? output->name() : "");
  for (const auto& [name, value] : node.attributes) {
    if (!schema || schema->attributes().contains(name)) *proto.add_attribute() = ToProto(name, value);
  }
  return proto;
}

onnx::NodeProto OneOutput(const std::string& op, const std::vector<std::string>& inputs,
                          const std::string& output) {
  onnx::NodeProto node;
  node.set_op_type(op);
  node.set_name(absl::StrCat(op, ":", output));
  for (const std::string& input : inputs) node.add_input(input);
  node.add_output(output);
  return node;
}

void SetInt(const std::string& name, int64_t value, onnx::NodeProto& node) {
  *node.add_attribute() = ToProto(name, Attribute(value));
}

void FreeName(const std::string& name, onnx::GraphProto& graph) {
  const std::string other = absl::StrCat(name, ".of_microbatch");
  const auto rename = [&](std::string& used) {
    if (used == name) used = other;
  };
  for (onnx::NodeProto& node : *graph.mutable_node()) {
    for (std::string& input : *node.mutable_input()) rename(input);
    for (std::string& output : *node.mutable_output()) rename(output);
  }
  for (onnx::ValueInfoProto& info : *graph.mutable_value_info()) rename(*info.mutable_name());
  for (onnx::ValueInfoProto& info : *graph.mutable_input()) rename(*info.mutable_name());
  for (onnx::TensorProto& tensor : *graph.mutable_initializer()) rename(*tensor.mutable_name());
}

void AddOpsets(onnx::ModelProto& model) {
  std::map<std::string, int> domains = {{"", NewestOpset("")}};
  for (const onnx::NodeProto& node : model.graph().node()) AddDomain(node.domain(), domains);
  for (const onnx::FunctionProto& function : model.functions()) {
    AddDomain(function.domain(), domains);
    for (const onnx::NodeProto& node : function.node()) AddDomain(node.domain(), domains);
  }
  const auto add = [](const std::map<std::string, int>& all, auto& to) {
    for (const auto& [domain, version] : all) {
      auto& opset = *to.add_opset_import();
      opset.set_domain(domain);
      opset.set_version(version);
    }
  };
  add(domains, model);
  for (onnx::FunctionProto& function : *model.mutable_functions()) {
    std::map<std::string, int> own = {{"", domains.at("")}};
    for (const onnx::NodeProto& node : function.node()) AddDomain(node.domain(), own);
    add(own, function);
  }
}

}  // namespace pipec
