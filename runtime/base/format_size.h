// Bytes for people.
#pragma once

#include <cstdint>
#include <string>

namespace pipec {

// "512 B", "1.5 kB", "1.25 GB": three digits, powers of 1000.
std::string FormatSize(int64_t bytes);

}  // namespace pipec
