// The discrete Fourier transform of one line of any length, in float64: Cooley and Tukey's for powers of
// two (Mathematics of Computation 19, 1965), Bluestein's convolution with a chirp for the others (IEEE
// Trans. Audio Electroacoust. 18, 1970).
#pragma once

#include <complex>
#include <cstdint>
#include <vector>

namespace pipec::cpu {

class Fourier {
 public:
  using Complex = std::complex<double>;

  explicit Fourier(int64_t n);

  int64_t n() const { return n_; }
  // Of what Run needs besides the line.
  int64_t scratch_elements() const { return chirp_.empty() ? 0 : m_; }
  // line[k] becomes the sum over j of line[j] * exp(-2 pi i j k / n); inverse: exp(+...), not divided by n.
  void Run(bool inverse, Complex* line, Complex* scratch) const;

 private:
  void Forward(Complex* line, Complex* scratch) const;
  void PowerOfTwo(Complex* line) const;  // of m_ elements

  int64_t n_, m_;                // m_: a power of two, n_ itself if that is one
  std::vector<Complex> roots_;   // exp(-2 pi i k / m_)
  std::vector<Complex> chirp_;   // exp(-pi i k^2 / n_); empty if n_ is a power of two
  std::vector<Complex> filter_;  // the transform of the chirp's conjugate over m_
};

}  // namespace pipec::cpu
