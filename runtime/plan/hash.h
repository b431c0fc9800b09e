// XXH3-64, as 16 hexadecimal digits: how a plan tells whether a file is still what pipec saw.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/base/file_reader.h"

namespace pipec {

std::string HashBytes(absl::string_view bytes);

// Of the bytes [offset, offset + length), read through the file's buffer: the whole need not fit in memory.
absl::StatusOr<std::string> HashSlice(FileReader& file, int64_t offset, int64_t length);

}  // namespace pipec
