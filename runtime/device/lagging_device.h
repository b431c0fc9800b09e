// Devices that are behind their host: their calls only enqueue, so inside a step the host neither waits for what
// has been computed nor asks about it, and it enqueues the next step before this one has run.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/device/device.h"

namespace pipec {

// Implemented by such a device beside Device.
class LaggingDevice {
 public:
  virtual ~LaggingDevice() = default;

  // Host memory that the device reads and writes when a copy runs, not when it is enqueued. Freed with the device.
  virtual absl::StatusOr<std::byte*> AllocatePinned(int64_t bytes) = 0;

  // Whether a step may change what training keeps is decided where it is known. From here on in the stream's order, and
  // until OpenGate, kernels that would change it (optimizers, running statistics) leave it as it is if one of these
  // float64 scalars (null: none) is NaN or infinite; a result that lies elsewhere is then a copy of what it would
  // have replaced.
  virtual absl::Status CloseGateUnlessFinite(Stream& stream, const void* a, const void* b) = 0;
  virtual absl::Status OpenGate(Stream& stream) = 0;

  // `enqueue` enqueues work on `stream`, and on streams that join it by events, from which it waits for all in the
  // end. It must be the same work each time for a key, with the same addresses. The first time it is enqueued as it
  // is, to warm up; the second time it is kept, together with that of all ranks whose messages are such events, and
  // from then on enqueued as a whole. So all these ranks make as many calls, each with keys of its own, and each
  // call waits until all have come: DeadlineExceeded.
  virtual absl::Status Repeat(Stream& stream, int64_t key, absl::FunctionRef<absl::Status()> enqueue,
                              absl::Time deadline) = 0;
  // A failure of this rank: waits in Repeat end with this status (the first one wins).
  virtual void Abort(const absl::Status& status) = 0;

  // What is enqueued between the two has a name, which stays: profilers show it.
  virtual void BeginRange(const char* name) = 0;
  virtual void EndRange() = 0;
};

}  // namespace pipec
