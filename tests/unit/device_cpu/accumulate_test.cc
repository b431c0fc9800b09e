// Kernels that add to sums over microbatches themselves, against the same kernels without.
#include <set>
#include <string>

#include "kernel_call.h"

namespace pipec {
namespace {

using testing::HasSubstr;

constexpr DType kF32 = DType::kFloat32, kF64 = DType::kFloat64;

struct Instruction {
  std::string op;
  std::vector<Tensor> operands;
  std::vector<Shape> results;
  std::vector<std::pair<std::string, Attribute>> attributes;
};

std::vector<int64_t> Ints(std::vector<int64_t> values) { return values; }

// Of every op that ops.def says adds, one for each way in which its kernel computes.
std::vector<Instruction> Instructions(DType dtype) {
  const auto random = [&](const Shape& shape) {
    return Random(dtype, shape, static_cast<int>(shape.size() + shape[0]));
  };
  const auto windows = [](Shape shape, std::vector<int64_t> more) {
    std::vector<std::pair<std::string, Attribute>> attributes = {{"shape", Ints({shape.begin(), shape.end()})}};
    if (!more.empty()) attributes.push_back({"group", more[0]});
    return attributes;
  };
  return {
      {"MatMulWeightGrad", {random({6, 40}), random({6, 9})}, {{9, 40}, {40}}, {}},
      {"MatMulWeightGrad", {random({6, 4}), random({6, 9})}, {{4, 9}, {4}}, {{"trans_b", int64_t{1}}}},
      {"MatMulWeightGrad", {random({0, 4}), random({0, 9})}, {{9, 4}, {4}}, {}},
      {"FusedMatMul",
       {random({5, 3}), random({5, 7})},
       {{3, 7}},
       {{"trans_a", int64_t{1}}, {"alpha", 0.5f}}},
      {"FusedMatMul", {random({5, 3}), random({7, 3})}, {{5, 7}}, {{"trans_b", int64_t{1}}}},
      {"FusedMatMul", {random({5, 0}), random({0, 7})}, {{5, 7}}, {}},
      {"GatherGrad", {random({4, 3}), Make(DType::kInt64, {4}, {2, 0, 2, -1})}, {{5, 3}}, {{"shape", Ints({5, 3})}}},
      {"GatherGrad",
       {random({2, 4, 3}), Make(DType::kInt32, {4}, {2, 0, 2, -1})},
       {{2, 5, 3}},
       {{"shape", Ints({2, 5, 3})}, {"axis", int64_t{1}}}},
      // Many windows, few windows, groups, nothing to multiply.
      {"ConvWeightGrad", {random({2, 4, 8, 8}), random({2, 3, 10, 10})}, {{4, 3, 3, 3}}, windows({4, 3, 3, 3}, {})},
      {"ConvWeightGrad", {random({2, 16, 1, 1}), random({2, 16, 3, 3})}, {{16, 16, 3, 3}}, windows({16, 16, 3, 3}, {})},
      {"ConvWeightGrad", {random({2, 6, 4}), random({2, 4, 6})}, {{6, 2, 3}}, windows({6, 2, 3}, {2})},
      {"ConvWeightGrad", {random({0, 4, 4}), random({0, 3, 6})}, {{4, 3, 3}}, windows({4, 3, 3}, {})},
      {"ConvTransposeWeightGrad",
       {random({2, 3, 10, 10}), random({2, 4, 8, 8})},
       {{4, 3, 3, 3}},
       windows({4, 3, 3, 3}, {})},
  };
}

KernelCall Call(const Instruction& instruction, DType dtype, bool sums) {
  KernelCall call(instruction.op, kHelpers);
  for (const auto& [name, value] : instruction.attributes) call.Attr(name, value);
  for (const Tensor& operand : instruction.operands) call.In(operand);
  if (sums) call.Attr("accumulate", int64_t{1});
  for (size_t k = 0; k < instruction.results.size(); ++k) {
    if (sums) call.In(Random(dtype, instruction.results[k], 100 + static_cast<int>(k)));
  }
  for (size_t k = 0; k < instruction.results.size(); ++k) {
    call.Out(dtype, instruction.results[k]);
    if (sums) call.At(static_cast<int>(instruction.operands.size() + k));
  }
  return call;
}

TEST(Accumulating, ReplacesInTheFirstMicrobatchThenAdds) {
  std::set<std::string> seen, wanted;
  for (const DType dtype : {kF32, kF64}) {
    for (const Instruction& instruction : Instructions(dtype)) {
      SCOPED_TRACE(instruction.op);
      seen.insert(instruction.op);
      const KernelCall plain = Call(instruction, dtype, false);
      KernelCall adding = Call(instruction, dtype, true);
      EXPECT_EQ(adding.Bytes(), plain.Bytes());
      adding.scalars.microbatch = 1;
      for (size_t k = 0; k < instruction.results.size(); ++k) {
        std::vector<double> sum = Values(Random(dtype, instruction.results[k], 100 + static_cast<int>(k)));
        const std::vector<double> added = plain.Get(static_cast<int>(k));
        for (size_t i = 0; i < sum.size(); ++i) sum[i] += added[i];
        ExpectNear(adding.Get(static_cast<int>(k)), sum, Tolerance(dtype));
      }
    }
  }
#define ADDS(domain, op) wanted.insert(op);
#include "runtime/device/ops.def"
  EXPECT_EQ(seen, wanted);
}

TEST(Accumulating, RefusesWhatIsNoSum) {
  const auto matrices = [] {
    KernelCall call("FusedMatMul", kHelpers);
    return call.In(Random(kF32, {2, 3}, 1)).In(Random(kF32, {3, 4}, 2)).Attr("accumulate", int64_t{1});
  };
  EXPECT_THAT(matrices().In(Random(kF32, {4, 2}, 3)).Out(kF32, {2, 4}).Error(),
              HasSubstr("operand 2 is not a sum like result 0"));
  EXPECT_THAT(matrices().In(Random(kF64, {2, 4}, 3)).Out(kF32, {2, 4}).Error(), HasSubstr("is not a sum like"));
  EXPECT_THAT(matrices().NoIn().Out(kF32, {2, 4}).Error(), HasSubstr("is not a sum like"));
  EXPECT_THAT(KernelCall("FusedMatMul", kHelpers).Attr("accumulate", int64_t{1}).Out(kF32, {2, 4}).Error(),
              HasSubstr("wanted a sum for each"));
  EXPECT_THAT(matrices().In(Random(kF32, {4}, 3)).In(Random(kF32, {2, 4}, 3)).Out(kF32, {2, 4}).Error(),
              HasSubstr("a product with a bias or an activation does not accumulate"));
  EXPECT_THAT(KernelCall("MatMul", "")
                  .In(Random(kF32, {2, 3}, 1))
                  .In(Random(kF32, {3, 4}, 2))
                  .In(Random(kF32, {2, 4}, 3))
                  .Out(kF32, {2, 4})
                  .Attr("accumulate", int64_t{1})
                  .Error(),
              HasSubstr("does not add to sums"));
}

}  // namespace
}  // namespace pipec
