// Contents that lie in a file beside the model, taken into the model.
#pragma once

#include "absl/status/status.h"
#include "compiler/onnx/read/external_data.h"
#include "onnx/onnx_pb.h"

namespace pipec {

class ExternalDataEmbedder {
 public:
  // In all of one model: a message holds less than 2 GB, and is in memory several times.
  static constexpr uint64_t kMostBytes = uint64_t{512} << 20;

  explicit ExternalDataEmbedder(ExternalDataResolver& external, uint64_t most_bytes = kMostBytes)
      : external_(external), most_bytes_(most_bytes), left_(most_bytes) {}

  // Of a tensor with external data; others, and those whose file is missing, stay as they are. Unimplemented, with
  // the tensor's name, beyond the limit; else the errors of ExternalDataResolver::Resolve, and of reading.
  absl::Status Embed(onnx::TensorProto& proto);

 private:
  ExternalDataResolver& external_;
  uint64_t most_bytes_, left_;
};

}  // namespace pipec
