// The ideals of the graph: the sets of blocks that can lie in front of a boundary between stages, each with
// what it takes to tell the cost of the stage between two of them.
//
// Where a block is comparable to all others, an ideal holds all blocks before it or none behind it. So the
// graph is a row of parts, and an ideal is some full parts and a set of the next one: only that set is kept.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/partition/blocks.h"

namespace pipec {

// How far a tensor or a shared parameter is in an ideal that holds some of its blocks, but not all.
struct Crossing {
  int id = 0;    // index into Blocks::tensors, or the group
  int held = 0;  // how many of its blocks are in the ideal
};

struct Ideal {
  int part = 0;
  int held = 0;                      // how many blocks it has
  long double seconds = 0;           // of their compute
  long double crossing_seconds = 0;  // of the tensors that cross the boundary behind it
  HeldBytes bytes;                   // with the shared parameters that some of its blocks use
  HeldBytes crossing_bytes;          // of those that others use too
  Remake remake;
  size_t set = 0;                       // where its set begins in Ideals::words
  size_t tensors = 0, tensors_end = 0;  // its range of Ideals::crossing, by id
  size_t shared = 0, shared_end = 0;    // likewise
};

struct Ideals {
  // An ideal comes after those that lie in it. By part; then seconds. The first is empty, the last holds all.
  std::vector<Ideal> ideals;
  std::vector<int> part_begin;  // blocks [part_begin[p], part_begin[p + 1]) are part p
  std::vector<uint64_t> words;  // bit k of a set: block part_begin[part] + k
  std::vector<Crossing> crossing;

  int size() const { return static_cast<int>(ideals.size()); }
  int WordsOf(int part) const { return (part_begin[part + 1] - part_begin[part] + 63) / 64; }
  bool Has(const Ideal& ideal, int block) const {
    if (block < part_begin[ideal.part]) return true;
    if (block >= part_begin[ideal.part + 1]) return false;
    const int bit = block - part_begin[ideal.part];
    return words[ideal.set + bit / 64] >> (bit % 64) & 1;
  }
  // Whether `a` lies in `b`, which comes after it.
  bool Inside(const Ideal& a, const Ideal& b) const {
    if (a.part != b.part) return true;
    for (int w = WordsOf(a.part) - 1; w >= 0; --w) {
      if (words[a.set + w] & ~words[b.set + w]) return false;
    }
    return true;
  }
};

// nullopt if there are more than `most`.
std::optional<Ideals> FindIdeals(const Blocks& blocks, int most);

}  // namespace pipec
