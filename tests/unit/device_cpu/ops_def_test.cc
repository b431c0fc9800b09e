// runtime/device/ops.def, which the compiler reads, against the kernels that there are.
#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/device/cpu/kernel_registry.h"

namespace pipec {
namespace {

using Name = std::pair<std::string, std::string>;  // domain, op

std::vector<Name> Rows(bool cpu_only) {
  std::vector<Name> names;
#define OP(domain, op, cpu, cuda) \
  if (!cpu_only || cpu != 0) names.emplace_back(domain, op);
#include "runtime/device/ops.def"
  return names;
}

std::vector<Name> Adding() {
  std::vector<Name> names;
#define ADDS(domain, op) names.emplace_back(domain, op);
#include "runtime/device/ops.def"
  return names;
}

TEST(OpsDef, NamesExactlyTheCpuKernels) { EXPECT_EQ(Rows(true), cpu::Kernels().Names()); }

TEST(OpsDef, NamesExactlyTheCpuKernelsThatAdd) { EXPECT_EQ(Adding(), cpu::Kernels().Names(/*adding=*/true)); }

TEST(OpsDef, IsSortedWithoutDoubles) {
  const std::vector<Name> rows = Rows(false);
  EXPECT_TRUE(std::adjacent_find(rows.begin(), rows.end(), std::greater_equal<>()) == rows.end())
      << "a row is twice or out of order";
}

}  // namespace
}  // namespace pipec
