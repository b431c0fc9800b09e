#include "tests/cuda_emulation/operands.h"

#include <utility>

namespace cuda_emulation {
namespace {

thread_local std::shared_ptr<const std::vector<OperandRange>> declared;

}  // namespace

OperandRanges::OperandRanges(std::vector<OperandRange> ranges) {
  declared = std::make_shared<const std::vector<OperandRange>>(std::move(ranges));
}

OperandRanges::~OperandRanges() { declared = nullptr; }

std::shared_ptr<const std::vector<OperandRange>> DeclaredOperands() { return declared; }

}  // namespace cuda_emulation
