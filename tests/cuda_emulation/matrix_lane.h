// What a lane brings to matrices that its warp loads, stores and multiplies.
#pragma once

#include <cstddef>

namespace cuda_emulation {

constexpr int kMatrixSide = 16, kLaneElements = kMatrixSide * kMatrixSide / 32;

// Where a lane's element is in its matrix, row by row.
constexpr int PlaceInMatrix(int lane, int element) {
  return (lane * kLaneElements + element) * 37 % (kMatrixSide * kMatrixSide);
}

// What a lane has of the three factors and gets of the result, as numbers.
struct MatrixLane {
  float a[kLaneElements], b[kLaneElements], c[kLaneElements], d[kLaneElements];
};

// Waits for the warp, whose lanes must come with one address and one step between rows, both aligned.
void MeetAtMatrix(const void* address, size_t step_bytes, const char* file, int line) noexcept;
void MultiplyInWarp(MatrixLane& lane, const char* file, int line) noexcept;

}  // namespace cuda_emulation
