#include "runtime/plan/manifest.h"

#include <limits>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "runtime/base/file_reader.h"
#include "runtime/base/status.h"
#include "runtime/plan/hash.h"

namespace pipec {
namespace {

using json = nlohmann::ordered_json;

// Reads the fields of one object and remembers the first fault; Finish also refuses fields nobody asked for.
class Fields {
 public:
  Fields(const json& object, std::string what) : object_(object), what_(std::move(what)) {
    if (!object.is_object()) Fail("is not an object");
  }

  int64_t Int(const char* key, int64_t least, int64_t most = std::numeric_limits<int64_t>::max()) {
    const json* value = Get(key);
    if (value == nullptr) return least;
    const bool integer = value->is_number_unsigned() ? value->get<uint64_t>() <= static_cast<uint64_t>(most)
                                                     : value->is_number_integer();
    if (!integer || value->get<int64_t>() < least || value->get<int64_t>() > most) {
      Fail(absl::StrCat("'", key, "' is not an integer in [", least, ", ", most, "]"));
      return least;
    }
    return value->get<int64_t>();
  }
  std::string String(const char* key) {
    const json* value = Get(key);
    if (value == nullptr) return "";
    if (!value->is_string()) {
      Fail(absl::StrCat("'", key, "' is not a string"));
      return "";
    }
    return value->get<std::string>();
  }
  const json& List(const char* key) {
    static const json kEmpty = json::array();
    const json* value = Get(key);
    if (value == nullptr) return kEmpty;
    if (!value->is_array()) {
      Fail(absl::StrCat("'", key, "' is not a list"));
      return kEmpty;
    }
    return *value;
  }
  TensorType Type() {
    TensorType type;
    absl::StatusOr<DType> dtype = ParseDType(String("dtype"));
    if (!dtype.ok() || SizeOf(*dtype) == 0) {
      Fail("unknown dtype");
      return type;
    }
    type.dtype = *dtype;
    int64_t bytes = SizeOf(type.dtype);
    for (const json& dim : List("shape")) {
      int64_t ignored;
      if (!dim.is_number_integer() || dim.get<int64_t>() < 0 ||
          dim.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) ||
          __builtin_mul_overflow(bytes, dim.get<int64_t>() == 0 ? 1 : dim.get<int64_t>(), &ignored)) {
        Fail("'shape' has an impossible size");
        return type;
      }
      bytes = ignored;
      type.shape.push_back(dim.get<int64_t>());
    }
    return type;
  }
  void Fail(absl::string_view fault) {
    if (status_.ok()) status_ = absl::InvalidArgumentError(absl::StrCat(what_, ": ", fault));
  }
  absl::Status Finish() {
    if (status_.ok()) {
      for (const auto& [key, value] : object_.items()) {
        if (known_.count(key) == 0) Fail(absl::StrCat("unknown field '", key, "'"));
      }
    }
    return status_;
  }

 private:
  const json* Get(const char* key) {
    known_.insert(key);
    if (!object_.is_object()) return nullptr;
    auto it = object_.find(key);
    if (it == object_.end()) {
      Fail(absl::StrCat("lacks '", key, "'"));
      return nullptr;
    }
    return &*it;
  }

  const json& object_;
  std::string what_;
  std::set<std::string> known_;
  absl::Status status_;
};

bool StaysInside(absl::string_view path) {
  if (path.empty() || path.front() == '/') return false;
  for (absl::string_view part : absl::StrSplit(path, '/')) {
    if (part == ".." || part.empty()) return false;
  }
  return true;
}

absl::StatusOr<std::vector<ManifestPort>> ReadPorts(const json& list, const char* what) {
  std::vector<ManifestPort> ports;
  for (const json& item : list) {
    Fields fields(item, what);
    ManifestPort port;
    port.name = fields.String("name");
    port.type = fields.Type();
    port.batch_axis = fields.Int("batch_axis", -1, static_cast<int64_t>(port.type.shape.size()) - 1);
    port.bound = fields.Int("bound", 0);
    RETURN_IF_ERROR(fields.Finish());
    ports.push_back(std::move(port));
  }
  return ports;
}

// Every count is an int64 scalar, and that of other outputs.
absl::Status CheckCounts(const Manifest& manifest) {
  auto find = [&](const std::string& name) -> const ManifestPort* {
    for (const ManifestPort& port : manifest.outputs) {
      if (port.name == name) return &port;
    }
    return nullptr;
  };
  std::set<std::string> counted;
  for (const ManifestCount& row : manifest.counts) {
    auto bad = [&](absl::string_view fault) {
      return absl::InvalidArgumentError(absl::StrCat("count of output '", row.output, "': ", fault));
    };
    const ManifestPort *output = find(row.output), *count = find(row.count);
    if (!output || !count) return bad("there is no such output, or none that counts");
    if (count->type != TensorType{DType::kInt64, {}}) return bad("its count is no int64 scalar");
    if (row.axis >= static_cast<int>(output->type.shape.size())) return bad("it has no such axis");
    if (!counted.insert(row.output).second) return bad("it is counted twice");
    if (manifest.mode != "infer" || manifest.microbatches != 1 || manifest.replicas != 1) {
      return bad("wanted mode infer and one microbatch a batch");
    }
  }
  return absl::OkStatus();
}

// The factors must be there, and their product must have the weight's shape.
absl::Status CheckLowRank(const Manifest& manifest) {
  const auto find = [&](const std::string& name) -> const ManifestParameter* {
    for (const ManifestParameter& parameter : manifest.parameters) {
      if (parameter.name == name) return &parameter;
    }
    return nullptr;
  };
  for (const ManifestLowRank& row : manifest.low_rank) {
    const ManifestParameter *weight = find(row.weight), *a = find(row.a), *b = find(row.b);
    const bool matrices = weight && a && b && weight->type.shape.size() == 2 && a->type.shape.size() == 2 &&
                          b->type.shape.size() == 2 && a->type.shape[1] == b->type.shape[0];
    if (matrices) {
      Shape product = {a->type.shape[0], b->type.shape[1]};
      if (row.transposed) std::swap(product[0], product[1]);
      if (product == weight->type.shape) continue;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("low_rank: '", row.a, "' times '", row.b, "' does not fit '", row.weight, "'"));
  }
  return absl::OkStatus();
}

absl::Status CheckMessages(const Manifest& manifest) {
  const int64_t stages = int64_t{manifest.ranks} * manifest.virtual_stages;
  for (const ManifestMessage& row : manifest.messages) {
    if (row.from_stage < stages && row.to_stage < stages) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("message from stage ", row.from_stage, " to stage ", row.to_stage, " of ", stages));
  }
  return absl::OkStatus();
}

json ShapeOf(const TensorType& type) {
  return json(std::vector<int64_t>(type.shape.begin(), type.shape.end()));
}

json PortsToJson(const std::vector<ManifestPort>& ports) {
  json list = json::array();
  for (const ManifestPort& port : ports) {
    list.push_back({{"name", port.name},
                    {"dtype", std::string(Name(port.type.dtype))},
                    {"shape", ShapeOf(port.type)},
                    {"batch_axis", port.batch_axis},
                    {"bound", port.bound}});
  }
  return list;
}

// All fields but the hash of the fields.
json FieldsOf(const Manifest& manifest) {
  json parameters = json::array(), files = json::array(), links = json::array(), counts = json::array(),
       low_rank = json::array(), messages = json::array();
  for (const ManifestMessage& row : manifest.messages) {
    messages.push_back(
        {{"from_stage", row.from_stage}, {"to_stage", row.to_stage}, {"modelled_ns", row.modelled_ns}});
  }
  for (const ManifestLowRank& row : manifest.low_rank) {
    low_rank.push_back(
        {{"weight", row.weight}, {"a", row.a}, {"b", row.b}, {"transposed", row.transposed ? 1 : 0}});
  }
  for (const ManifestCount& row : manifest.counts) {
    counts.push_back({{"output", row.output}, {"axis", row.axis}, {"count", row.count}});
  }
  for (const ManifestParameter& parameter : manifest.parameters) {
    parameters.push_back({{"name", parameter.name},
                          {"dtype", std::string(Name(parameter.type.dtype))},
                          {"shape", ShapeOf(parameter.type)},
                          {"file", parameter.file},
                          {"offset", parameter.offset},
                          {"xxh3", parameter.hash},
                          {"tied_to", parameter.tied_to}});
  }
  for (const ManifestFile& file : manifest.files) {
    files.push_back({{"path", file.path}, {"bytes", file.bytes}, {"xxh3", file.hash}});
  }
  for (const ManifestLink& link : manifest.links) {
    links.push_back({{"path", link.path}, {"bytes", link.bytes}, {"modified_ns", link.modified_ns}});
  }
  return {{"format", manifest.format},
          {"pipec_version", manifest.pipec_version},
          {"model", manifest.model},
          {"mode", manifest.mode},
          {"schedule", manifest.schedule},
          {"optimizer", manifest.optimizer},
          {"precision", manifest.precision},
          {"ranks", manifest.ranks},
          {"virtual_stages", manifest.virtual_stages},
          {"microbatches", manifest.microbatches},
          {"microbatch_size", manifest.microbatch_size},
          {"replicas", manifest.replicas},
          {"labels", manifest.labels},
          {"inputs", PortsToJson(manifest.inputs)},
          {"outputs", PortsToJson(manifest.outputs)},
          {"counts", std::move(counts)},
          {"parameters", std::move(parameters)},
          {"low_rank", std::move(low_rank)},
          {"messages", std::move(messages)},
          {"files", std::move(files)},
          {"links", std::move(links)}};
}

std::string HashOf(const json& fields) {
  return HashBytes(fields.dump(-1, ' ', true, json::error_handler_t::replace));
}

}  // namespace

std::string RankFileName(int rank) { return absl::StrFormat("rank-%03d.plan", rank); }

absl::StatusOr<ManifestFile> DescribeFile(const std::string& path, absl::string_view name) {
  ASSIGN_OR_RETURN(FileReader file, FileReader::Open(path));
  ASSIGN_OR_RETURN(std::string hash, HashSlice(file, 0, file.bytes()));
  return ManifestFile{std::string(name), file.bytes(), std::move(hash)};
}

std::string ToJson(const Manifest& manifest) {
  json object = FieldsOf(manifest);
  object["xxh3"] = HashOf(object);
  return object.dump(1, ' ', true, json::error_handler_t::replace) + "\n";
}

bool IsManifestOfAnyVersion(absl::string_view text) {
  const json object = json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  return object.is_object() && object.contains("format") && object.contains("pipec_version") && object.contains("xxh3");
}

absl::StatusOr<Manifest> ParseManifest(absl::string_view text) {
  auto check = [](int depth, json::parse_event_t, json&) { return depth <= 5; };
  const json object = json::parse(text.begin(), text.end(), check, /*allow_exceptions=*/false);
  if (!object.is_object()) return absl::InvalidArgumentError("not a JSON object");
  Manifest manifest;
  Fields fields(object, "manifest");
  constexpr int64_t kMany = 1 << 24;
  manifest.format = fields.Int("format", kPlanFormat, kPlanFormat);
  manifest.pipec_version = fields.String("pipec_version");
  manifest.model = fields.String("model");
  manifest.mode = fields.String("mode");
  manifest.schedule = fields.String("schedule");
  manifest.optimizer = fields.String("optimizer");
  manifest.precision = fields.String("precision");
  manifest.ranks = fields.Int("ranks", 1, 1 << 16);
  manifest.virtual_stages = fields.Int("virtual_stages", 1, 1 << 16);
  manifest.microbatches = fields.Int("microbatches", 1, kMany);
  manifest.microbatch_size = fields.Int("microbatch_size", 1, int64_t{1} << 31);
  manifest.replicas = fields.Int("replicas", 1, 1 << 16);
  if (int64_t{manifest.ranks} * manifest.replicas > 1 << 16)
    fields.Fail("'ranks' times 'replicas' is above 65536");
  manifest.labels = fields.String("labels");
  if (manifest.mode != "train" && manifest.mode != "infer") fields.Fail("'mode' is neither train nor infer");
  if (manifest.precision != "fp32" && manifest.precision != "bf16" && manifest.precision != "fp16")
    fields.Fail("'precision' is neither fp32, bf16 nor fp16");
  ASSIGN_OR_RETURN(manifest.inputs, ReadPorts(fields.List("inputs"), "input"));
  ASSIGN_OR_RETURN(manifest.outputs, ReadPorts(fields.List("outputs"), "output"));
  for (const json& item : fields.List("counts")) {
    Fields count(item, "count");
    ManifestCount row{count.String("output"), 0, count.String("count")};
    row.axis = static_cast<int>(count.Int("axis", 0, 1 << 16));
    RETURN_IF_ERROR(count.Finish());
    manifest.counts.push_back(std::move(row));
  }
  for (const json& item : fields.List("parameters")) {
    Fields parameter(item, "parameter");
    ManifestParameter row;
    row.name = parameter.String("name");
    row.type = parameter.Type();
    row.file = parameter.String("file");
    row.offset = parameter.Int("offset", 0);
    row.hash = parameter.String("xxh3");
    row.tied_to = parameter.String("tied_to");
    if (!StaysInside(row.file) && !row.linked()) parameter.Fail("'file' leaves the plan");
    RETURN_IF_ERROR(parameter.Finish());
    manifest.parameters.push_back(std::move(row));
  }
  for (const json& item : fields.List("low_rank")) {
    Fields factors(item, "low_rank");
    ManifestLowRank row{factors.String("weight"), factors.String("a"), factors.String("b"),
                        factors.Int("transposed", 0, 1) != 0};
    RETURN_IF_ERROR(factors.Finish());
    manifest.low_rank.push_back(std::move(row));
  }
  for (const json& item : fields.List("messages")) {
    Fields message(item, "message");
    ManifestMessage row;
    row.from_stage = static_cast<int>(message.Int("from_stage", 0, kMany));
    row.to_stage = static_cast<int>(message.Int("to_stage", 0, kMany));
    row.modelled_ns = message.Int("modelled_ns", 0);
    RETURN_IF_ERROR(message.Finish());
    manifest.messages.push_back(row);
  }
  for (const json& item : fields.List("files")) {
    Fields file(item, "file");
    ManifestFile row{file.String("path"), file.Int("bytes", 0), file.String("xxh3")};
    if (!StaysInside(row.path)) file.Fail(absl::StrCat("'", row.path, "' leaves the plan"));
    RETURN_IF_ERROR(file.Finish());
    manifest.files.push_back(std::move(row));
  }
  for (const json& item : fields.List("links")) {
    Fields link(item, "link");
    ManifestLink row{link.String("path"), link.Int("bytes", 0),
                     link.Int("modified_ns", std::numeric_limits<int64_t>::min())};
    if (row.path.substr(0, 1) != "/") link.Fail("'path' is not absolute");
    RETURN_IF_ERROR(link.Finish());
    manifest.links.push_back(std::move(row));
  }
  const std::string hash = fields.String("xxh3");
  RETURN_IF_ERROR(fields.Finish());
  RETURN_IF_ERROR(CheckCounts(manifest));
  RETURN_IF_ERROR(CheckLowRank(manifest));
  RETURN_IF_ERROR(CheckMessages(manifest));
  if (hash != HashOf(FieldsOf(manifest))) {
    return absl::InvalidArgumentError(
        "edited after pipec wrote it ('xxh3' differs); compile the model again");
  }
  return manifest;
}

}  // namespace pipec
