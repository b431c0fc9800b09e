#include "runtime/transport/local/device_adder.h"

#include <algorithm>

#include "runtime/base/status.h"

namespace pipec {
namespace {

constexpr int64_t kPiece = int64_t{4} << 20;  // bytes

int64_t BytesOf(const Summand& summand) { return summand.elements * SizeOf(summand.dtype); }

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceAdder>> DeviceAdder::Create(Device& device) {
  std::unique_ptr<DeviceAdder> adder(new DeviceAdder(device));
  ASSIGN_OR_RETURN(adder->added_, device.NewEvent());
  return adder;
}

absl::Status DeviceAdder::Prepare(absl::Span<const Summand> summands) {
  for (const Summand& summand : summands) {
    const int64_t bytes = BytesOf(summand);
    if (const int64_t needed = std::min(kPiece, bytes); needed > capacity_) {
      ASSIGN_OR_RETURN(result_, device_.Allocate(needed));
      ASSIGN_OR_RETURN(other_, device_.Allocate(needed));
      capacity_ = needed;
    }
    for (int64_t begin = 0; begin < bytes; begin += kPiece) {
      const int64_t size = std::min(kPiece, bytes - begin);
      std::unique_ptr<Kernel>& kernel = kernels_[{summand.dtype, size}];
      if (kernel != nullptr) continue;
      const KernelOperand piece{{summand.dtype, {size / SizeOf(summand.dtype)}}};
      ASSIGN_OR_RETURN(kernel,
                       device_.Prepare({"Add", "", "sum over replicas", {}, {piece, piece}, {piece}}));
    }
  }
  return absl::OkStatus();
}

absl::Status DeviceAdder::Enqueue(const Sum& sum, const SumEnd& own, absl::Time deadline) {
  for (const SumEnd& end : sum.ends) RETURN_IF_ERROR(own.stream->Wait(*end.ready, deadline));
  for (size_t i = 0; i < own.summands.size(); ++i) {
    const int64_t bytes = BytesOf(own.summands[i]);
    for (int64_t begin = 0; begin < bytes; begin += kPiece)
      RETURN_IF_ERROR(EnqueuePiece(sum, i, begin, std::min(kPiece, bytes - begin), *own.stream));
  }
  RETURN_IF_ERROR(own.stream->Record(*added_));
  for (const SumEnd& end : sum.ends) RETURN_IF_ERROR(end.stream->Wait(*added_, deadline));
  return absl::OkStatus();
}

absl::Status DeviceAdder::EnqueuePiece(const Sum& sum, size_t summand, int64_t begin, int64_t bytes,
                                       Stream& stream) {
  const auto address = [&](size_t replica) {
    return static_cast<std::byte*>(sum.ends[replica].summands[summand].data) + begin;
  };
  Kernel& add = *kernels_.at({sum.ends[0].summands[summand].dtype, bytes});
  RETURN_IF_ERROR(device_.Copy(stream, result_, address(0), bytes));
  for (size_t replica = 1; replica < sum.ends.size(); ++replica) {
    RETURN_IF_ERROR(device_.Copy(stream, other_, address(replica), bytes));
    const void* const inputs[] = {result_, other_};
    void* const outputs[] = {result_};
    RETURN_IF_ERROR(add.Launch(stream, {inputs, outputs, nullptr, nullptr}));
  }
  for (size_t replica = 0; replica < sum.ends.size(); ++replica)
    RETURN_IF_ERROR(device_.Copy(stream, address(replica), result_, bytes));
  return absl::OkStatus();
}

}  // namespace pipec
