#include "runtime/data/npz.h"

#include <zip.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "runtime/base/status.h"
#include "runtime/data/npy.h"

namespace pipec {
namespace {

using Archive = std::unique_ptr<zip_t, decltype(&zip_discard)>;

absl::StatusOr<Archive> OpenArchive(const std::string& path, int flags) {
  int code = 0;
  zip_t* archive = zip_open(path.c_str(), flags, &code);
  if (archive != nullptr) return Archive(archive, &zip_discard);
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  absl::Status status =
      absl::InvalidArgumentError(absl::StrCat("cannot open '", path, "': ", zip_error_strerror(&error)));
  zip_error_fini(&error);
  return status;
}

absl::StatusOr<std::shared_ptr<std::string>> ReadMember(zip_t* archive, zip_uint64_t index) {
  // Grows with what really comes, not with what the directory claims.
  auto bytes = std::make_shared<std::string>();
  std::unique_ptr<zip_file_t, decltype(&zip_fclose)> member(zip_fopen_index(archive, index, 0), &zip_fclose);
  if (member == nullptr) return absl::DataLossError(zip_strerror(archive));
  constexpr size_t kPiece = 1 << 20;
  for (;;) {
    const size_t size = bytes->size();
    bytes->resize(size + kPiece);
    const zip_int64_t got = zip_fread(member.get(), bytes->data() + size, kPiece);
    bytes->resize(size + std::max<zip_int64_t>(got, 0));
    if (got < 0) return absl::DataLossError(zip_file_strerror(member.get()));
    if (got == 0) return bytes;
  }
}

}  // namespace

absl::StatusOr<NamedArrays> ReadNpz(const std::string& path, absl::Span<const std::string> wanted) {
  ASSIGN_OR_RETURN(Archive archive, OpenArchive(path, ZIP_RDONLY));
  NamedArrays arrays;
  for (zip_int64_t i = 0; i < zip_get_num_entries(archive.get(), 0); ++i) {
    const char* entry = zip_get_name(archive.get(), i, 0);
    if (entry == nullptr) continue;
    const std::string name(absl::StripSuffix(entry, ".npy"));
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), name) == wanted.end()) continue;
    absl::StatusOr<std::shared_ptr<std::string>> bytes = ReadMember(archive.get(), i);
    absl::Status status = bytes.status();
    if (bytes.ok()) {
      absl::StatusOr<HostArray> array = ParseNpy(**bytes, *bytes);
      status = array.status();
      if (array.ok() && !arrays.emplace(name, *std::move(array)).second) {
        status = absl::InvalidArgumentError("the file has two of this name");
      }
    }
    if (!status.ok())
      return absl::Status(status.code(),
                          absl::StrCat("'", path, "', array '", name, "': ", status.message()));
  }
  return arrays;
}

absl::Status WriteNpz(const std::string& path, const NamedArrays& arrays) {
  ASSIGN_OR_RETURN(Archive archive, OpenArchive(path, ZIP_CREATE | ZIP_TRUNCATE));
  std::vector<std::string> files;  // libzip reads them when it closes the archive
  for (const auto& [name, array] : arrays) {
    absl::StatusOr<std::string> header = NpyHeader(array.type);
    if (!header.ok())
      return absl::Status(header.status().code(),
                          absl::StrCat("'", path, "', array '", name, "': ", header.status().message()));
    files.push_back(absl::StrCat(*header, array.bytes));
  }
  int i = 0;
  for (const auto& [name, array] : arrays) {
    const std::string& file = files[i++];
    zip_source_t* source = zip_source_buffer(archive.get(), file.data(), file.size(), 0);
    const zip_int64_t index =
        source == nullptr
            ? -1
            : zip_file_add(archive.get(), absl::StrCat(name, ".npy").c_str(), source, ZIP_FL_ENC_UTF_8);
    if (index < 0) {
      zip_source_free(source);
      return absl::UnknownError(absl::StrCat("cannot write '", path, "': ", zip_strerror(archive.get())));
    }
    zip_set_file_compression(archive.get(), index, ZIP_CM_STORE, 0);
    // The same arrays give the same file, byte for byte.
    zip_file_set_dostime(archive.get(), index, 0, 0x21, 0);
  }
  // zip_close writes a temporary file and renames it.
  if (zip_close(archive.get()) != 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot write '", path, "': ", zip_strerror(archive.get())));
  }
  archive.release();
  return absl::OkStatus();
}

}  // namespace pipec
