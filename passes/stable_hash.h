// What a node's random draws are keyed by.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace pipec {

// FNV-1a: the same on every machine and in every release, as masks must be.
inline uint32_t StableHash(absl::string_view text) {
  uint32_t hash = 2166136261u;
  for (unsigned char c : text) hash = (hash ^ c) * 16777619u;
  return hash;
}

}  // namespace pipec
