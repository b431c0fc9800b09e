// The entry point that every fuzz target defines: libFuzzer calls it with inputs it makes up, run_corpus.cc
// with those of the seed corpus.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>

// Always 0. A fault is a crash, a report of a sanitizer, or taking too long.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace pipec {

// What a target asks of what was read: a fault if it does not hold.
inline void Require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace pipec
