#include "compiler/onnx/read/embed_external_data.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/status.h"

namespace pipec {

absl::Status ExternalDataEmbedder::Embed(onnx::TensorProto& proto) {
  if (proto.data_location() != onnx::TensorProto::EXTERNAL) return absl::OkStatus();
  const auto refuse = [&](const absl::Status& status) {
    return absl::Status(status.code(), absl::StrCat("initializer '", proto.name(), "': ", status.message()));
  };
  absl::StatusOr<Tensor> tensor = external_.Resolve(proto);
  if (!tensor.ok()) return refuse(tensor.status());
  const TensorData& data = tensor->data;
  if (!data.file) return absl::OkStatus();
  if (data.length > left_) {
    return refuse(absl::UnimplementedError(absl::StrCat(
        ToString(tensor->type), " is no parameter, and what is none goes into the plan's model: ",
        most_bytes_ >> 20, " MiB of that are supported, from files beside the model")));
  }
  absl::StatusOr<MappedFile> file = MappedFile::Open(*data.file);
  if (!file.ok()) return refuse(file.status());
  // The file may have changed since it was looked at.
  if (data.offset > file->bytes().size() || data.length > file->bytes().size() - data.offset) {
    return refuse(absl::InvalidArgumentError(absl::StrCat("passes the end of '", *data.file, "'")));
  }
  proto.set_raw_data(std::string(file->bytes().substr(data.offset, data.length)));
  proto.clear_external_data();
  proto.clear_data_location();
  left_ -= data.length;
  return absl::OkStatus();
}

}  // namespace pipec
