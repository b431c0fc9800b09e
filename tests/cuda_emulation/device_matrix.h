// Products of matrices by a warp (CUDA programming guide, "Warp Matrix Functions"): of 16 x 16 16-bit floats, with sums
// in float32. Which elements of a matrix a lane has is not said; here they lie scattered. What is not loaded is NaN.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cmath>

#include "tests/cuda_emulation/device_warp.h"
#include "tests/cuda_emulation/matrix_lane.h"

namespace cuda_emulation {

inline float NumberOf(float x) { return x; }
inline float NumberOf(__half x) { return __half2float(x); }
inline float NumberOf(__nv_bfloat16 x) { return __bfloat162float(x); }

}  // namespace cuda_emulation

namespace nvcuda::wmma {

struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
enum layout_t { mem_row_major, mem_col_major };

template <typename Use, int kM, int kN, int kK, typename T, typename Layout = void>
struct fragment {
  static_assert(kM == 16 && kN == 16 && kK == 16, "the emulation has no other shapes");
  static constexpr int num_elements = cuda_emulation::kLaneElements;
  fragment() { std::fill_n(x, num_elements, T(NAN)); }
  T x[num_elements];
};
template <typename T>
using accumulator_of = fragment<accumulator, 16, 16, 16, T>;

template <typename Fragment, typename T>
void LoadEach(Fragment& to, const T* from, unsigned step, bool by_rows, const char* file, int line) {
  cuda_emulation::MeetAtMatrix(from, step * sizeof(T), file, line);
  for (int e = 0; e < to.num_elements; ++e) {
    const int place = cuda_emulation::PlaceInMatrix(cuda_emulation::Lane(), e);
    const unsigned row = place / 16, column = place % 16;
    to.x[e] = from[by_rows ? row * step + column : column * step + row];
  }
}
template <typename Use, typename T>
void load_matrix_sync(fragment<Use, 16, 16, 16, T, row_major>& to, const T* from, unsigned step,
                      CUDA_EMULATION_PLACE) {
  LoadEach(to, from, step, true, file, line);
}
template <typename Use, typename T>
void load_matrix_sync(fragment<Use, 16, 16, 16, T, col_major>& to, const T* from, unsigned step,
                      CUDA_EMULATION_PLACE) {
  LoadEach(to, from, step, false, file, line);
}
inline void load_matrix_sync(accumulator_of<float>& to, const float* from, unsigned step, layout_t layout,
                             CUDA_EMULATION_PLACE) {
  LoadEach(to, from, step, layout == mem_row_major, file, line);
}
inline void store_matrix_sync(float* to, const accumulator_of<float>& from, unsigned step, layout_t layout,
                              CUDA_EMULATION_PLACE) {
  cuda_emulation::MeetAtMatrix(to, step * sizeof(float), file, line);
  for (int e = 0; e < from.num_elements; ++e) {
    const int place = cuda_emulation::PlaceInMatrix(cuda_emulation::Lane(), e);
    const unsigned row = place / 16, column = place % 16;
    to[layout == mem_row_major ? row * step + column : column * step + row] = from.x[e];
  }
}
template <typename Use, typename T, typename Layout>
void fill_fragment(fragment<Use, 16, 16, 16, T, Layout>& to, T value) {
  std::fill_n(to.x, to.num_elements, value);
}

template <typename T, typename LayoutA, typename LayoutB>
void mma_sync(accumulator_of<float>& d, const fragment<matrix_a, 16, 16, 16, T, LayoutA>& a,
              const fragment<matrix_b, 16, 16, 16, T, LayoutB>& b, const accumulator_of<float>& c,
              CUDA_EMULATION_PLACE) {
  cuda_emulation::MatrixLane lane;
  for (int e = 0; e < d.num_elements; ++e) {
    lane.a[e] = cuda_emulation::NumberOf(a.x[e]);
    lane.b[e] = cuda_emulation::NumberOf(b.x[e]);
    lane.c[e] = c.x[e];
  }
  cuda_emulation::MultiplyInWarp(lane, file, line);
  std::copy_n(lane.d, d.num_elements, d.x);
}

}  // namespace nvcuda::wmma
