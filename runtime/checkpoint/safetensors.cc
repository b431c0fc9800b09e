#include "runtime/checkpoint/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "runtime/base/status.h"

namespace pipec {
namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "tensors are stored as they lie in memory");

constexpr uint64_t kMaxHeader = 100'000'000;
constexpr absl::string_view kMetadata = "__metadata__";

struct DTypeName {
  DType dtype;
  const char* name;
};
constexpr DTypeName kDTypes[] = {
    {DType::kFloat32, "F32"},
    {DType::kFloat64, "F64"},
    {DType::kFloat16, "F16"},
    {DType::kBFloat16, "BF16"},
    {DType::kInt8, "I8"},
    {DType::kInt16, "I16"},
    {DType::kInt32, "I32"},
    {DType::kInt64, "I64"},
    {DType::kUint8, "U8"},
    {DType::kUint16, "U16"},
    {DType::kUint32, "U32"},
    {DType::kUint64, "U64"},
    {DType::kBool, "BOOL"},
    {DType::kFloat8E4M3FN, "F8_E4M3"},
    {DType::kFloat8E5M2, "F8_E5M2"},
    {DType::kFloat8E8M0, "F8_E8M0"},
};

// Parses without exceptions, refusing what the JSON library would let pass: duplicate keys, and nesting no
// header has.
absl::StatusOr<json> ParseHeader(absl::string_view text) {
  std::vector<std::set<std::string>> keys;
  std::string fault;
  auto check = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth > 3 && fault.empty()) fault = "nested too deeply";
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end && !keys.empty()) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.empty()) {
      const std::string key = parsed.get<std::string>();
      if (!keys.back().insert(key).second && fault.empty()) fault = absl::StrCat("duplicate key '", key, "'");
    }
    return true;
  };
  json header = json::parse(text.begin(), text.end(), check, /*allow_exceptions=*/false);
  if (!fault.empty()) return absl::InvalidArgumentError(fault);
  if (header.is_discarded() || !header.is_object()) return absl::InvalidArgumentError("not a JSON object");
  return header;
}

absl::StatusOr<SafetensorsFile::Entry> ReadEntry(const std::string& name, const json& fields) {
  auto bad = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("tensor '", name, "': ", what));
  };
  if (!fields.is_object() || fields.size() != 3 || !fields.contains("dtype") || !fields.contains("shape") ||
      !fields.contains("data_offsets")) {
    return bad("needs exactly dtype, shape and data_offsets");
  }
  SafetensorsFile::Entry entry;
  entry.name = name;
  const json& dtype = fields["dtype"];
  for (const DTypeName& row : kDTypes) {
    if (dtype == row.name) entry.type.dtype = row.dtype;
  }
  if (entry.type.dtype == DType::kUndefined)
    return bad(absl::StrCat("unknown dtype ", dtype.dump(-1, ' ', true, json::error_handler_t::replace)));
  const json& shape = fields["shape"];
  if (!shape.is_array()) return bad("shape is not a list");
  int64_t bytes = SizeOf(entry.type.dtype);
  bool overflow = false;
  for (const json& dim : shape) {
    if (!dim.is_number_unsigned() || dim.get<uint64_t>() > std::numeric_limits<int64_t>::max()) {
      return bad("shape has an entry that is not a size");
    }
    entry.type.shape.push_back(dim.get<int64_t>());
    overflow |= __builtin_mul_overflow(bytes, entry.type.shape.back(), &bytes);
  }
  // A zero anywhere makes the product zero, whatever the order of the factors.
  if (std::find(entry.type.shape.begin(), entry.type.shape.end(), 0) != entry.type.shape.end()) {
    bytes = 0;
    overflow = false;
  }
  if (overflow) return bad("its size overflows 64 bits");
  const json& range = fields["data_offsets"];
  if (!range.is_array() || range.size() != 2 || !range[0].is_number_unsigned() ||
      !range[1].is_number_unsigned()) {
    return bad("data_offsets is not a pair of offsets");
  }
  const uint64_t begin = range[0].get<uint64_t>(), end = range[1].get<uint64_t>();
  if (begin > end || end > std::numeric_limits<int64_t>::max()) return bad("data_offsets are not a range");
  if (static_cast<int64_t>(end - begin) != bytes) {
    return bad(
        absl::StrCat("data_offsets span ", end - begin, " bytes, ", ToString(entry.type), " needs ", bytes));
  }
  entry.offset = static_cast<int64_t>(begin);
  entry.bytes = bytes;
  return entry;
}

}  // namespace

absl::StatusOr<SafetensorsLayout> LayOutSafetensors(absl::Span<const SafetensorsTensor> tensors,
                                                    const std::map<std::string, std::string>& metadata) {
  // Written key by key, so that the JSON keeps the order of the tensors.
  std::string text = "{";
  auto quoted = [](const std::string& s) {
    return json(s).dump(-1, ' ', true, json::error_handler_t::replace);
  };
  if (!metadata.empty())
    absl::StrAppend(&text, "\"", kMetadata, "\":", json(metadata).dump(), tensors.empty() ? "" : ",");
  SafetensorsLayout layout;
  std::set<absl::string_view> names;
  int64_t end = 0;
  for (const SafetensorsTensor& tensor : tensors) {
    const char* dtype = nullptr;
    for (const DTypeName& row : kDTypes) {
      if (row.dtype == tensor.type.dtype) dtype = row.name;
    }
    if (dtype == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor '", tensor.name, "': safetensors has no type ", Name(tensor.type.dtype)));
    }
    if (tensor.name == kMetadata || !names.insert(tensor.name).second) {
      return absl::InvalidArgumentError(absl::StrCat("two tensors would be called '", tensor.name, "'"));
    }
    const int64_t begin = end;
    end += tensor.type.bytes();
    layout.offsets.push_back(begin);
    absl::StrAppend(&text, begin == 0 && layout.offsets.size() == 1 ? "" : ",", quoted(tensor.name),
                    ":{\"dtype\":\"", dtype, "\",\"shape\":", ToString(tensor.type.shape),
                    ",\"data_offsets\":[", begin, ",", end, "]}");
  }
  text += "}";
  text.append((64 - (text.size() + 8) % 64) % 64, ' ');
  if (text.size() > kMaxHeader) return absl::InvalidArgumentError("the header would exceed 100000000 bytes");
  const uint64_t length = text.size();
  layout.header.assign(reinterpret_cast<const char*>(&length), 8);
  layout.header += text;
  for (int64_t& offset : layout.offsets) offset += layout.header.size();
  layout.file_bytes = layout.header.size() + end;
  return layout;
}

absl::StatusOr<SafetensorsFile> SafetensorsFile::Open(const std::string& path) {
  ASSIGN_OR_RETURN(MappedFile mapped, MappedFile::Open(path));
  SafetensorsFile file(std::move(mapped));
  absl::Status status = file.ReadHeader();
  if (!status.ok())
    return absl::Status(status.code(),
                        absl::StrCat("'", path, "' is not a safetensors file: ", status.message()));
  return file;
}

absl::Status SafetensorsFile::ReadHeader() {
  const absl::string_view bytes = file_.bytes();
  if (bytes.size() < 8) return absl::InvalidArgumentError("shorter than 8 bytes");
  uint64_t length;
  std::memcpy(&length, bytes.data(), 8);
  if (length > kMaxHeader || length > bytes.size() - 8) {
    return absl::InvalidArgumentError(
        absl::StrCat("header of ", length, " bytes in a file of ", bytes.size()));
  }
  const absl::string_view text = bytes.substr(8, length);
  if (text.empty() || text.front() != '{')
    return absl::InvalidArgumentError("the header does not start with {");
  ASSIGN_OR_RETURN(json header, ParseHeader(text));
  for (const auto& [name, fields] : header.items()) {
    if (name == kMetadata) {
      if (!fields.is_object()) return absl::InvalidArgumentError("__metadata__ is not an object");
      for (const auto& [key, value] : fields.items()) {
        if (!value.is_string())
          return absl::InvalidArgumentError("__metadata__ maps to something else than strings");
        metadata_[key] = value.get<std::string>();
      }
      continue;
    }
    ASSIGN_OR_RETURN(Entry entry, ReadEntry(name, fields));
    entries_.push_back(std::move(entry));
  }
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.offset, a.bytes, a.name) < std::tie(b.offset, b.bytes, b.name);
  });
  const int64_t buffer = 8 + static_cast<int64_t>(length);
  int64_t end = 0;
  for (int i = 0; i < static_cast<int>(entries_.size()); ++i) {
    Entry& entry = entries_[i];
    if (entry.offset != end) {
      return absl::InvalidArgumentError(absl::StrCat("tensor '", entry.name, "' starts at ", entry.offset,
                                                     ", the bytes before it end at ", end));
    }
    end += entry.bytes;
    entry.offset += buffer;
    index_[entry.name] = i;
  }
  if (end != static_cast<int64_t>(bytes.size()) - buffer) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensors of ", end, " bytes, buffer of ", bytes.size() - buffer, " bytes"));
  }
  return absl::OkStatus();
}

const SafetensorsFile::Entry* SafetensorsFile::Find(absl::string_view name) const {
  auto it = index_.find(name);
  return it == index_.end() ? nullptr : &entries_[it->second];
}

absl::StatusOr<SafetensorsWriter> SafetensorsWriter::Create(
    const std::string& path, absl::Span<const SafetensorsTensor> tensors,
    const std::map<std::string, std::string>& metadata) {
  ASSIGN_OR_RETURN(SafetensorsLayout layout, LayOutSafetensors(tensors, metadata));
  ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  RETURN_IF_ERROR(file.Write(layout.header));
  return SafetensorsWriter(std::move(file), layout.file_bytes - static_cast<int64_t>(layout.header.size()));
}

absl::Status SafetensorsWriter::Append(absl::string_view bytes) {
  written_ += bytes.size();
  return file_.Write(bytes);
}

absl::Status SafetensorsWriter::Finish() {
  if (written_ != wanted_) {
    return absl::FailedPreconditionError(
        absl::StrCat("wrote ", written_, " bytes of tensors, announced ", wanted_));
  }
  return file_.Commit();
}

}  // namespace pipec
