// Concat and Split: pieces of one tensor along an axis, and the other way round.
#include <utility>
#include <vector>

#include "runtime/device/cpu/kernels/copy_kernel.h"
#include "runtime/device/cpu/kernels/register.h"

namespace pipec::cpu {
namespace {

struct Piece {
  StridedCopy copy;
  int64_t offset;  // in the whole, bytes
};

class ConcatKernel : public Kernel {
 public:
  explicit ConcatKernel(std::vector<Piece> pieces) : pieces_(std::move(pieces)) {}
  absl::Status Launch(Stream&, const KernelArguments& arguments) override {
    auto* whole = static_cast<std::byte*>(arguments.outputs[0]);
    for (size_t k = 0; k < pieces_.size(); ++k)
      pieces_[k].copy.Run(arguments.inputs[k], whole + pieces_[k].offset);
    return absl::OkStatus();
  }

 private:
  std::vector<Piece> pieces_;
};

class SplitKernel : public Kernel {
 public:
  explicit SplitKernel(std::vector<Piece> pieces) : pieces_(std::move(pieces)) {}
  absl::Status Launch(Stream&, const KernelArguments& arguments) override {
    const auto* whole = static_cast<const std::byte*>(arguments.inputs[0]);
    for (size_t k = 0; k < pieces_.size(); ++k) {
      if (arguments.outputs[k] == nullptr) continue;  // nobody reads this piece
      pieces_[k].copy.Run(whole + pieces_[k].offset, arguments.outputs[k]);
    }
    return absl::OkStatus();
  }

 private:
  std::vector<Piece> pieces_;
};

std::vector<Piece> PiecesOf(DType dtype, const std::vector<StridedMove>& moves) {
  std::vector<Piece> pieces;
  for (const StridedMove& move : moves) {
    pieces.push_back({CopyOf(dtype, move), (move.from_offset + move.to_offset) * SizeOf(dtype)});
  }
  return pieces;
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareConcat(const KernelSpec& spec) {
  ASSIGN_OR_RETURN(const std::vector<StridedMove> moves, ConcatMoves(spec));
  return std::make_unique<ConcatKernel>(PiecesOf(spec.outputs[0].type.dtype, moves));
}

absl::StatusOr<std::unique_ptr<Kernel>> PrepareSplit(const KernelSpec& spec) {
  ASSIGN_OR_RETURN(const std::vector<StridedMove> moves, SplitMoves(spec));
  return std::make_unique<SplitKernel>(PiecesOf(spec.inputs[0].type.dtype, moves));
}

}  // namespace

void RegisterConcatKernels(KernelRegistry& registry) {
  registry.Add("Concat", "", PrepareConcat);
  registry.Add("Split", "", PrepareSplit);
}

}  // namespace pipec::cpu
