#include "runtime/device/cpu/kernels/fourier.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace pipec::cpu {
namespace {

using Complex = Fourier::Complex;

// std::complex's own product looks for infinities first.
inline Complex Times(const Complex& a, const Complex& b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

Complex Root(double part) { return {std::cos(2 * M_PI * part), -std::sin(2 * M_PI * part)}; }

}  // namespace

Fourier::Fourier(int64_t n) : n_(n), m_(1) {
  while (m_ < n) m_ *= 2;
  const bool whole = m_ == n;
  if (!whole) m_ *= 2;
  for (int64_t k = 0; k < m_ / 2; ++k)
    roots_.push_back(Root(static_cast<double>(k) / static_cast<double>(m_)));
  if (whole) return;
  filter_.assign(m_, 0);
  for (int64_t k = 0; k < n; ++k) {
    // k^2 taken modulo the chirp's period, so that large k stay exact.
    chirp_.push_back(Root(static_cast<double>(k * k % (2 * n)) / static_cast<double>(2 * n)));
    filter_[k] = filter_[k == 0 ? 0 : m_ - k] = std::conj(chirp_[k]) / static_cast<double>(m_);
  }
  PowerOfTwo(filter_.data());
}

void Fourier::PowerOfTwo(Complex* line) const {
  for (int64_t i = 1, j = 0; i < m_; ++i) {  // j: i with its bits the other way round
    int64_t bit = m_ / 2;
    for (; j & bit; bit /= 2) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(line[i], line[j]);
  }
  for (int64_t half = 1; half < m_; half *= 2) {
    const int64_t step = m_ / (2 * half);
    for (int64_t begin = 0; begin < m_; begin += 2 * half) {
      for (int64_t k = 0; k < half; ++k) {
        const Complex odd = Times(line[begin + half + k], roots_[k * step]), even = line[begin + k];
        line[begin + k] = even + odd;
        line[begin + half + k] = even - odd;
      }
    }
  }
}

void Fourier::Forward(Complex* line, Complex* scratch) const {
  if (chirp_.empty()) return PowerOfTwo(line);
  for (int64_t k = 0; k < n_; ++k) scratch[k] = Times(line[k], chirp_[k]);
  std::fill(scratch + n_, scratch + m_, Complex{});
  PowerOfTwo(scratch);
  // The inverse transform as the conjugate of the transform of the conjugate.
  for (int64_t k = 0; k < m_; ++k) scratch[k] = std::conj(Times(scratch[k], filter_[k]));
  PowerOfTwo(scratch);
  for (int64_t k = 0; k < n_; ++k) line[k] = Times(std::conj(scratch[k]), chirp_[k]);
}

void Fourier::Run(bool inverse, Complex* line, Complex* scratch) const {
  for (int64_t k = 0; k < n_ && inverse; ++k) line[k] = std::conj(line[k]);
  Forward(line, scratch);
  for (int64_t k = 0; k < n_ && inverse; ++k) line[k] = std::conj(line[k]);
}

}  // namespace pipec::cpu
