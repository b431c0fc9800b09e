// Elements of the types that NVIDIA's libraries compute in.
#pragma once

#include <library_types.h>

#include <cstddef>
#include <cstdint>

namespace cuda_emulation {

// 0: a type that the doubles do not know.
size_t ElementBytes(cudaDataType_t type);
// Element i of an array.
double GetElement(cudaDataType_t type, const void* array, int64_t i);
// Rounds to nearest.
void PutElement(cudaDataType_t type, void* array, int64_t i, double value);

}  // namespace cuda_emulation
