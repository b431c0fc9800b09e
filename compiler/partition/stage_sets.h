// Sets of stage numbers 0..S, one for every place where the sequence can be cut: bit s of set i says that
// blocks [0, i) can make s stages. Words of 64 bits, so that one operation treats all stages at once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace pipec {

class StageSets {
 public:
  StageSets(int sets, int stages) : words_(stages / 64 + 1), bits_(static_cast<size_t>(sets) * words_, 0) {}

  int words() const { return words_; }
  uint64_t* operator[](int set) { return &bits_[static_cast<size_t>(set) * words_]; }
  const uint64_t* operator[](int set) const { return &bits_[static_cast<size_t>(set) * words_]; }

  void Insert(int set, int stage) { (*this)[set][stage / 64] |= uint64_t{1} << (stage % 64); }
  void Remove(int set, int stage) { (*this)[set][stage / 64] &= ~(uint64_t{1} << (stage % 64)); }
  bool Has(int set, int stage) const { return (*this)[set][stage / 64] >> (stage % 64) & 1; }
  bool Empty(int set) const {
    return std::all_of((*this)[set], (*this)[set] + words_, [](uint64_t word) { return word == 0; });
  }
  void Clear() { std::fill(bits_.begin(), bits_.end(), 0); }

 private:
  int words_;
  std::vector<uint64_t> bits_;
};

}  // namespace pipec
