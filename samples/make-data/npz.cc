#include "samples/make-data/npz.h"

#include <zip.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace pipec::samples {
namespace {

// Version 1.0: magic, u16 header length, a Python dict padded so that the data starts on a multiple of 64.
std::string Npy(const Array& array) {
  std::string header =
      absl::StrCat("{'descr': '", array.descr, "', 'fortran_order': False, 'shape': (",
                   absl::StrJoin(array.shape, ", "), array.shape.size() == 1 ? "," : "", "), }");
  constexpr size_t kPreamble = 10;
  header.resize((kPreamble + header.size() + 1 + 63) / 64 * 64 - kPreamble - 1, ' ');
  header += '\n';
  const char length[2] = {static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  return std::string("\x93NUMPY\x01\x00", 8) + std::string(length, 2) + header + array.bytes;
}

}  // namespace

absl::Status WriteNpz(const std::string& file, const std::vector<Array>& arrays) {
  int code = 0;
  zip_t* archive = zip_open(file.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code);
  if (!archive) return absl::UnavailableError(absl::StrCat("cannot write ", file));
  std::vector<std::string> members;  // must outlive zip_close
  for (const Array& array : arrays) members.push_back(Npy(array));
  for (size_t k = 0; k < arrays.size(); ++k) {
    zip_source_t* source = zip_source_buffer(archive, members[k].data(), members[k].size(), 0);
    const zip_int64_t index =
        zip_file_add(archive, (arrays[k].name + ".npy").c_str(), source, ZIP_FL_ENC_UTF_8);
    // The same bytes for the same data: no time of writing.
    zip_file_set_mtime(archive, index, 315532800, 0);
  }
  if (zip_close(archive) != 0) {
    const std::string reason = zip_strerror(archive);
    zip_discard(archive);
    return absl::UnavailableError(absl::StrCat("cannot write ", file, ": ", reason));
  }
  return absl::OkStatus();
}

}  // namespace pipec::samples
