// Instructions with the attribute `accumulate`, as gradients of parameters are added up over microbatches: the last
// operands are sums, one a result (absent where the result is), of its type; the result lies where its sum lies. In the
// first microbatch of a step it replaces the sum, in the others it is added.
#pragma once

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "runtime/device/device.h"

namespace pipec {

inline bool Accumulates(const KernelSpec& spec) { return spec.attributes.Int("accumulate", 0) != 0; }

// Such an instruction as its kernel sees it: without the sums and with KernelSpec::accumulates. InvalidArgument if the
// operands do not end with sums like the results; Unimplemented where they are not of float32 or float64, or
// the op's kernel does not add (`adds`).
absl::StatusOr<KernelSpec> WithoutSums(const KernelSpec& spec, bool adds);

// Of what `first` writes and `later` adds to the same outputs, the one that the microbatch asks for.
std::unique_ptr<Kernel> MakeFirstOrLater(std::unique_ptr<Kernel> first, std::unique_ptr<Kernel> later);

// make(bool add): the kernel that writes its results or, if `add`, adds them to what lies there.
template <typename Make>
absl::StatusOr<std::unique_ptr<Kernel>> MakeAccumulating(const KernelSpec& spec, const Make& make) {
  absl::StatusOr<std::unique_ptr<Kernel>> first = make(false);
  if (!spec.accumulates || !first.ok()) return first;
  absl::StatusOr<std::unique_ptr<Kernel>> later = make(true);
  if (!later.ok()) return later;
  return MakeFirstOrLater(*std::move(first), *std::move(later));
}

}  // namespace pipec
