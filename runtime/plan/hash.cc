#include "runtime/plan/hash.h"

#include <xxhash.h>

#include <memory>

#include "absl/strings/str_format.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

std::string Digits(XXH64_hash_t hash) { return absl::StrFormat("%016x", hash); }

}  // namespace

std::string HashBytes(absl::string_view bytes) { return Digits(XXH3_64bits(bytes.data(), bytes.size())); }

absl::StatusOr<std::string> HashSlice(FileReader& file, int64_t offset, int64_t length) {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), XXH3_freeState);
  XXH3_64bits_reset(state.get());
  RETURN_IF_ERROR(file.Read(offset, length, [&](absl::string_view piece) {
    XXH3_64bits_update(state.get(), piece.data(), piece.size());
    return absl::OkStatus();
  }));
  return Digits(XXH3_64bits_digest(state.get()));
}

}  // namespace pipec
