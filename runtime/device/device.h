// A device: memory, streams, events and kernels. One rank owns one device object and its own arena.
//
// Everything here only enqueues: a kernel, copy or wait is placed on a stream and may run later; the executor waits in
// one place (Stream::Synchronize, Stream::Wait). A CPU stream runs its work at once; a CUDA stream does not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "runtime/base/attributes.h"
#include "runtime/base/tensor_type.h"
#include "runtime/device/scalars.h"

namespace pipec {

// One operand or result as a kernel's Prepare sees it.
struct KernelOperand {
  TensorType type;
  bool present = true;              // false: an absent optional operand; `type` means nothing
  const std::byte* constant = nullptr;  // host contents during Prepare, if they are known then
};

// An instruction before it has addresses.
struct KernelSpec {
  std::string op;
  std::string domain;
  std::string name;  // of the node, for messages
  Attributes attributes;
  std::vector<KernelOperand> inputs;
  std::vector<KernelOperand> outputs;
  double modelled_seconds = 0;  // as the plan says; only the replay device cares
  // Adds its results to what lies in the outputs, but in the first microbatch of a step (operands/sums.h).
  bool accumulates = false;
};

// What a kernel is launched with. Absent operands are null. An output may be the same address as the input that the op
// table lets it alias (compiler/ops): element-wise ops, accumulators, optimizer ops.
struct KernelArguments {
  const void* const* inputs;
  void* const* outputs;
  const StepScalars* scalars;
  void* workspace;  // workspace_bytes() of them, shared by all kernels of the rank
  bool first_microbatch = true;  // of a step; scalars may lie where the host cannot read them
};

// A point in a stream's work, or the arrival of a message. Reusable. Any thread may make these calls.
class Event {
 public:
  virtual ~Event() = default;
  // For transports: some thread will mark it (Stream::Record) or fail it. Until then who waits for the event waits
  // for that.
  virtual void Expect() = 0;
  // Every wait for what is expected ends with this status. Nothing happens if it is marked already.
  virtual void Fail(const absl::Status& status) = 0;
  // Blocks the caller until it has happened, at most until the deadline: DeadlineExceeded.
  virtual absl::Status Await(absl::Time deadline) = 0;
};

class Stream {
 public:
  virtual ~Stream() = default;
  // Work enqueued after this call starts when the event has happened. Blocks, at most until the deadline
  // (DeadlineExceeded), while the event is expected and nobody has marked it; a CPU stream until it has happened.
  virtual absl::Status Wait(Event& event, absl::Time deadline) = 0;
  // Marks this point of the stream's work in `event`. Any thread may; a transport's streams are used by both ends.
  virtual absl::Status Record(Event& event) = 0;
  // Blocks the caller until all enqueued work is done.
  virtual absl::Status Synchronize(absl::Time deadline) = 0;
};

// An instruction whose choice of implementation is made. Launch allocates nothing.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual int64_t workspace_bytes() const { return 0; }
  // Errors: InvalidArgument for contents that no shape could rule out (an index or a label out of range), naming
  // value and bounds; the executor adds the node's name.
  virtual absl::Status Launch(Stream& stream, const KernelArguments& arguments) = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual absl::string_view name() const = 0;

  // Zeroed memory, aligned to 64 bytes or more, freed with the device. ResourceExhausted if there is none.
  virtual absl::StatusOr<std::byte*> Allocate(int64_t bytes) = 0;
  virtual absl::StatusOr<std::unique_ptr<Stream>> NewStream() = 0;
  virtual absl::StatusOr<std::unique_ptr<Event>> NewEvent() = 0;
  virtual absl::Status CopyToDevice(Stream& stream, void* to, const void* from_host, int64_t bytes) = 0;
  virtual absl::Status CopyToHost(Stream& stream, void* to_host, const void* from, int64_t bytes) = 0;
  virtual absl::Status Copy(Stream& stream, void* to, const void* from, int64_t bytes) = 0;

  // Unimplemented if this device has no kernel for the op, types and attributes; InvalidArgument if the shapes are
  // wrong.
  virtual absl::StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelSpec& spec) = 0;
};

}  // namespace pipec
