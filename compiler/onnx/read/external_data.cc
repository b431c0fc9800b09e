#include "compiler/onnx/read/external_data.h"

#include <sys/stat.h>

#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "runtime/base/status.h"
#include "runtime/base/tiny_types.h"

namespace pipec {
namespace {

namespace fs = std::filesystem;

absl::Status Refuse(absl::string_view location, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("external data '", location, "' ", why));
}

// Decimal digits only: no sign, no exponent, below 2^64.
bool ParseCount(const std::string& text, uint64_t* value) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos &&
         absl::SimpleAtoi(text, value);
}

}  // namespace

absl::Status ExternalDataResolver::Check(const std::string& location, File& file) const {
  if (location.empty()) return Refuse(location, "names no file");
  if (location.find('\0') != std::string::npos) return Refuse(location, "has a zero byte in its name");
  const fs::path relative(location);
  if (relative.is_absolute())
    return Refuse(location, "is an absolute path; it must lie in the model's folder");
  for (const fs::path& part : relative) {
    if (part == "..") return Refuse(location, "leaves the model's folder by '..'");
  }
  std::error_code error;
  fs::path path = fs::canonical(folder_.empty() ? "." : folder_, error);
  struct stat folder, info;
  if (error || stat(path.c_str(), &folder) != 0) {
    return absl::NotFoundError(absl::StrCat("the model's folder ", folder_, " cannot be read"));
  }
  bool linked = false;
  for (const fs::path& part : relative) {
    path /= part;
    if (lstat(path.c_str(), &info) != 0) {
      if (allow_missing_) return absl::OkStatus();
      return absl::NotFoundError(absl::StrCat("external data '", location, "' is not in the model's folder"));
    }
    if (S_ISLNK(info.st_mode)) {
      if (!allow_links_) return Refuse(location, "is or passes a symbolic link; --allow-links accepts that");
      linked = true;
    }
  }
  if (stat(path.c_str(), &info) != 0) {
    if (allow_missing_) return absl::OkStatus();
    return absl::NotFoundError(absl::StrCat("external data '", location, "' is a link to nothing"));
  }
  if (!S_ISREG(info.st_mode)) return Refuse(location, "is not a regular file");
  if (info.st_nlink > 1) {
    if (!allow_links_) return Refuse(location, "has several names (hard links); --allow-links accepts that");
    linked = true;
  }
  if (linked && info.st_uid != folder.st_uid) {
    return Refuse(location, absl::StrCat("is a link to a file of another user, ", info.st_uid,
                                         "; the model's folder belongs to ", folder.st_uid));
  }
  // What a link leads to is decided here: a plan that refers to the file does not change when the link does.
  const fs::path resolved = fs::canonical(path, error);
  if (error) return Refuse(location, "cannot be read");
  file.path = std::make_shared<const std::string>(resolved.string());
  file.size = static_cast<uint64_t>(info.st_size);
  return absl::OkStatus();
}

const ExternalDataResolver::File& ExternalDataResolver::Open(const std::string& location) {
  auto [it, fresh] = files_.try_emplace(location);
  if (fresh) it->second.status = Check(location, it->second);
  return it->second;
}

absl::StatusOr<Tensor> ExternalDataResolver::Resolve(const onnx::TensorProto& proto) {
  Tensor tensor;
  ASSIGN_OR_RETURN(tensor.type, TypeOf(proto));
  const uint64_t needed = BytesInFile(tensor.type.dtype, tensor.type.elements());
  if (!proto.raw_data().empty()) return absl::InvalidArgumentError("has its data twice, here and in a file");
  std::string location;
  uint64_t offset = 0, length = needed;
  absl::flat_hash_set<absl::string_view> seen;
  for (const auto& entry : proto.external_data()) {
    if (!seen.insert(entry.key()).second) {
      return absl::InvalidArgumentError(absl::StrCat("external data has the key '", entry.key(), "' twice"));
    }
    if (entry.key() == "location") {
      location = entry.value();
    } else if (entry.key() == "offset" || entry.key() == "length") {
      if (!ParseCount(entry.value(), entry.key() == "offset" ? &offset : &length)) {
        return absl::InvalidArgumentError(absl::StrCat("external data has ", entry.key(), " '", entry.value(),
                                                       "', which is not a number of bytes"));
      }
    } else if (entry.key() != "checksum") {
      return absl::InvalidArgumentError(absl::StrCat("external data has an unknown key '", entry.key(),
                                                     "'; there are location, offset, length, checksum"));
    }
  }
  if (length != needed) {
    return absl::InvalidArgumentError(absl::StrCat("external data has length ", length, ", its type ",
                                                   ToString(tensor.type), " needs ", needed));
  }
  const File& file = Open(location);
  RETURN_IF_ERROR(file.status);
  if (!file.path) return tensor;
  if (offset > file.size || length > file.size - offset) {
    return Refuse(location, absl::StrCat("has ", file.size, " bytes; offset ", offset, " and length ", length,
                                         " pass its end"));
  }
  tensor.data = {.file = file.path, .offset = offset, .length = length};
  return tensor;
}

}  // namespace pipec
