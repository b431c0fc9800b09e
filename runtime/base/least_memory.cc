#include "runtime/base/least_memory.h"

#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace pipec {
namespace {

constexpr char kPayload[] = "pipec/least-memory";

}  // namespace

absl::Status WithLeastMemory(absl::Status status, int64_t bytes) {
  status.SetPayload(kPayload, absl::Cord(absl::StrCat(bytes)));
  return status;
}

absl::Status SameLeastMemory(const absl::Status& status, const absl::Status& other) {
  const std::optional<int64_t> least = LeastMemory(other);
  return least ? WithLeastMemory(status, *least) : status;
}

std::optional<int64_t> LeastMemory(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayload);
  int64_t bytes = 0;
  if (!payload || !absl::SimpleAtoi(std::string(*payload), &bytes)) return std::nullopt;
  return bytes;
}

}  // namespace pipec
