#include "runtime/transport/local/channel.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"

namespace pipec {

absl::Status CheckSizes(const Channel& channel, const MessageTag& tag) {
  const std::vector<Piece>&sent = channel.send.pieces, &received = channel.receive.pieces;
  auto name = [&] {
    return absl::StrCat("message from stage ", tag.from_stage, " to ", tag.to_stage, ", microbatch ",
                        tag.microbatch);
  };
  if (sent.size() != received.size()) {
    return absl::FailedPreconditionError(
        absl::StrCat(name(), ": ", sent.size(), " tensors sent, ", received.size(), " awaited"));
  }
  for (size_t i = 0; i < sent.size(); ++i) {
    if (sent[i].bytes != received[i].bytes) {
      return absl::FailedPreconditionError(absl::StrCat(name(), ": tensor ", i, " has ", sent[i].bytes,
                                                        " bytes where it is sent, ", received[i].bytes,
                                                        " where it is awaited"));
    }
  }
  return absl::OkStatus();
}

void CopyByHost(const Channel& channel) {
  const std::vector<Piece>&from = channel.send.pieces, &to = channel.receive.pieces;
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i].bytes > 0) std::memcpy(to[i].data, from[i].data, from[i].bytes);
  }
}

absl::Status EnqueueCopy(const Channel& channel, Device& device, absl::Time deadline) {
  Stream& stream = *channel.receive.stream;
  RETURN_IF_ERROR(stream.Wait(*channel.send.ready, deadline));
  RETURN_IF_ERROR(stream.Wait(*channel.receive.ready, deadline));
  const std::vector<Piece>&from = channel.send.pieces, &to = channel.receive.pieces;
  for (size_t i = 0; i < from.size(); ++i)
    RETURN_IF_ERROR(device.Copy(stream, to[i].data, from[i].data, from[i].bytes));
  RETURN_IF_ERROR(stream.Record(*channel.arrived));
  return channel.send.stream->Wait(*channel.arrived, deadline);
}

}  // namespace pipec
