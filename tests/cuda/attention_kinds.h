// Instructions of attention and its gradient, by what they are like.
#pragma once

#include <string>
#include <vector>

#include "tests/cuda/kernel_case.h"

namespace pipec {

struct AttentionKind {
  const char* name;
  bool of_cudnn = true;  // in 16 bits
  Shape heads = {2, 3};
  int64_t rows = 9, columns = 9, depth = 16, width = 8;
  bool causal = false, zero_rows = false;
  Shape mask = {};  // empty: none
  bool bools = false;
};

KernelCase CaseOf(const AttentionKind& kind, DType dtype, bool logs = true);
// Of any O, and logarithms above most scores.
KernelCase GradientCaseOf(const AttentionKind& kind, DType dtype);

// Results on the emulated GPU, in the order of this seed. Nothing is reported, and all is given back.
std::vector<std::string> Computed(const KernelCase& c, uint64_t seed = 0);
// They are the CPU's, but for rounding, which grows with the sums: `growth` times that of ten terms or so.
void ExpectTheCpus(const KernelCase& c, const std::vector<std::string>& got, double growth = 1);

}  // namespace pipec
