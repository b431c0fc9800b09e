#include "compiler/onnx/export.h"

#include <exception>
#include <filesystem>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "compiler/onnx/export_stages.h"
#include "compiler/onnx/pytorch/pytorch_parameters.h"
#include "compiler/onnx/read/all_initializers.h"
#include "compiler/onnx/read/attribute_proto.h"
#include "compiler/onnx/read/embed_external_data.h"
#include "compiler/onnx/read/external_data.h"
#include "compiler/onnx/read/read_model.h"
#include "compiler/onnx/schema/schema_context.h"
#include "onnx/defs/schema.h"
#include "onnx/onnx_pb.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

// The first IR version whose functions may be called from the main graph and from each other.
constexpr int kIrVersion = 10;

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

absl::StatusOr<std::string> Serialise(const onnx::ModelProto& model) {
  std::string bytes;
  if (!model.SerializeToString(&bytes)) {
    return absl::ResourceExhaustedError("the model is above protobuf's 2 GB without its external data");
  }
  return bytes;
}

// The Cast from a weight as it is stored to the float32 that the graph holds.
void AddWidening(const Value& value, const std::string& stored, onnx::GraphProto& graph) {
  onnx::NodeProto& cast = *graph.add_node();
  cast.set_op_type("Cast");
  cast.set_name(value.name());
  cast.add_input(stored);
  cast.add_output(value.name());
  onnx::AttributeProto& to = *cast.add_attribute();
  to.set_name("to");
  to.set_type(onnx::AttributeProto::INT);
  to.set_i(static_cast<int64_t>(value.type.dtype));
}

// A parameter or constant: its contents if they are in memory, else where they are. A parameter without data
// keeps its type: ONNX has no other word for it than an input.
void AddTensor(const Value& value, onnx::GraphProto& graph) {
  if (!value.data.bytes && !value.data.file) {
    auto& input = *graph.add_input();
    input.set_name(value.name());
    *input.mutable_type() = ToProto(value.type);
    return;
  }
  const bool widened = value.data.stored != DType::kUndefined;
  const TensorType stored{widened ? value.data.stored : value.type.dtype, value.type.shape};
  onnx::TensorProto& proto = *graph.add_initializer();
  proto = ToProto(stored, value.data.bytes ? absl::string_view(*value.data.bytes) : "");
  proto.set_name(widened ? absl::StrCat(value.name(), "/", Name(stored.dtype)) : value.name());
  if (widened) AddWidening(value, proto.name(), graph);
  if (value.data.file) SetExternal(proto, *value.data.file, value.data.offset, value.data.length);
}

void AddInfo(const Value& value, google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>& list) {
  auto& info = *list.Add();
  info.set_name(value.name());
  *info.mutable_type() = ToProto(value.type);
}

void AddOpset(onnx::ModelProto& model, const std::string& domain, int version) {
  auto& opset = *model.add_opset_import();
  opset.set_domain(domain);
  opset.set_version(version);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> WithExternalData(
    const std::string& path, absl::Span<const std::vector<ExternalTensor>> places) {
  ASSIGN_OR_RETURN(onnx::ModelProto model, ReadModel(path));
  // As import saw it. That links are what the user allows was checked there.
  ExternalDataResolver external(std::filesystem::path(path).parent_path().string(), /*allow_links=*/true,
                                /*allow_missing=*/true);
  RETURN_IF_ERROR(RestorePyTorchParameters(model, external).status());
  ExternalDataEmbedder embedder(external);
  std::vector<std::string> results;
  for (const std::vector<ExternalTensor>& tensors : places) {
    absl::flat_hash_map<absl::string_view, const ExternalTensor*> wanted;
    for (const ExternalTensor& tensor : tensors) wanted[tensor.name] = &tensor;
    absl::Status embedded;
    ForEachInitializer(model, [&](onnx::TensorProto& proto) {
      auto it = wanted.find(proto.name());
      if (it == wanted.end()) {
        if (embedded.ok()) embedded = embedder.Embed(proto);
        return;
      }
      SetExternal(proto, it->second->location, it->second->offset, it->second->length);
      wanted.erase(it);
    });
    RETURN_IF_ERROR(embedded);
    if (!wanted.empty()) {
      return absl::NotFoundError(absl::StrCat(path, ": has no initializer '", wanted.begin()->first, "'"));
    }
    ASSIGN_OR_RETURN(results.emplace_back(), Serialise(model));
  }
  return results;
}

absl::StatusOr<std::string> ExportModule(const Module& module) {
  onnx::ModelProto model;
  model.set_ir_version(kIrVersion);
  model.set_producer_name("pipec");
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name(module.model_name.empty() ? "model" : module.model_name);
  try {
    const auto& known = onnx::OpSchemaRegistry::DomainToVersionRange::Instance().Map();
    absl::flat_hash_map<std::string, int> domains = {{"", known.at("").second}, {kPipecDomain, 1}};
    const Graph& source = module.graph;
    for (const Value* input : source.inputs()) AddInfo(*input, *graph.mutable_input());
    const absl::flat_hash_set<const Value*> outputs(source.outputs.begin(), source.outputs.end());
    for (const Value* value : source.Values()) {
      if (value->kind() == ValueKind::kParameter || value->kind() == ValueKind::kConstant) {
        AddTensor(*value, graph);
      } else if (value->kind() == ValueKind::kAccumulator || value->kind() == ValueKind::kState) {
        AddInfo(*value, *graph.mutable_input());
      } else if (value->kind() == ValueKind::kResult && !outputs.contains(value) &&
                 module.level < Level::kStaged) {
        AddInfo(*value, *graph.mutable_value_info());
      }
    }
    for (const Node* node = source.first_node(); node; node = node->next()) {
      auto it = known.find(node->domain());
      domains.try_emplace(node->domain(), it == known.end() ? 1 : it->second.second);
    }
    if (module.level < Level::kStaged) {
      for (const Node* node = source.first_node(); node; node = node->next()) {
        *graph.add_node() = ToProto(*node);
      }
    } else {
      domains[kStageDomain] = 1;
      AddStageFunctions(module, domains, model);
    }
    for (const Value* output : source.outputs) AddInfo(*output, *graph.mutable_output());
    for (const auto& [domain, version] : domains) AddOpset(model, domain, version);
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("the onnx library refuses what was exported: ", error.what()));
  }
  return Serialise(model);
}

}  // namespace pipec
