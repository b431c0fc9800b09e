// What the targets importer and text share: bytes of a model file, imported as pipec does it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tests/fuzz/memory_file.h"

namespace pipec {

// Writes the bytes to `file` and imports it, folding shape arithmetic. Whatever the importer accepts must
// satisfy the verifier and withstand the folding of constants: aborts if not.
void ImportBytes(MemoryFile& file, const uint8_t* data, size_t size);

}  // namespace pipec
