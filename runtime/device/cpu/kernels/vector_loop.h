// Loops that the compiler is to vectorise: what runs inside one must be inlined into it, however large it is.
// The room is compiled for AVX2, see CMakeLists.txt.
#pragma once

#define PIPEC_INLINE inline __attribute__((always_inline))
