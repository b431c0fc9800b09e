#include "runtime/data/array_data.h"

#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/counted.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/status.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/data/host_array.h"
#include "runtime/data/npy.h"
#include "runtime/data/npz.h"

namespace pipec {
namespace {

class ArrayData : public DataSource {
 public:
  ArrayData(std::vector<DataInput> inputs, std::vector<HostArray> arrays, int64_t samples)
      : inputs_(std::move(inputs)), arrays_(std::move(arrays)), samples_(samples) {}

  int64_t samples() const override { return samples_; }
  absl::Status Read(int input, absl::Span<const int64_t> samples, std::byte* to) const override {
    const HostArray& array = arrays_[input];
    GatherSamples(array.bytes.data(), array.type.dtype, samples_, inputs_[input].type,
                  inputs_[input].batch_axis, samples, to);
    return absl::OkStatus();
  }

 private:
  std::vector<DataInput> inputs_;
  std::vector<HostArray> arrays_;
  int64_t samples_;
};

absl::StatusOr<NamedArrays> ReadSafetensors(const std::string& path) {
  ASSIGN_OR_RETURN(SafetensorsFile opened, SafetensorsFile::Open(path));
  auto file = std::make_shared<SafetensorsFile>(std::move(opened));
  NamedArrays arrays;
  for (const SafetensorsFile::Entry& entry : file->entries())
    arrays[entry.name] = {entry.type, file->Bytes(entry), file};
  return arrays;
}

absl::StatusOr<NamedArrays> ReadFolder(const std::string& path, const std::vector<std::string>& wanted) {
  NamedArrays arrays;
  for (const std::string& name : wanted) {
    const std::string file_path = absl::StrCat(path, "/", name, ".npy");
    absl::StatusOr<MappedFile> opened = MappedFile::Open(file_path);
    if (absl::IsNotFound(opened.status())) continue;
    if (!opened.ok()) return opened.status();
    auto file = std::make_shared<MappedFile>(*std::move(opened));
    absl::StatusOr<HostArray> array = ParseNpy(file->bytes(), file);
    if (!array.ok()) {
      return absl::Status(array.status().code(),
                          absl::StrCat("'", file_path, "': ", array.status().message()));
    }
    arrays[name] = *std::move(array);
  }
  return arrays;
}

// The names in a file, for the message about one that is missing.
std::string NamesIn(const std::string& path, const NamedArrays& read) {
  NamedArrays arrays = read;
  if (absl::EndsWith(path, ".npz")) {
    absl::StatusOr<NamedArrays> all = ReadNpz(path, {});
    if (all.ok()) arrays = *std::move(all);
  }
  if (arrays.empty()) return "none of the model's inputs";
  return absl::StrJoin(arrays, ", ",
                       [](std::string* out, const auto& row) { absl::StrAppend(out, row.first); });
}

}  // namespace

absl::StatusOr<std::unique_ptr<DataSource>> OpenArrays(const std::string& path,
                                                       const std::vector<DataInput>& inputs) {
  std::vector<std::string> wanted;
  for (const DataInput& input : inputs) wanted.push_back(input.name);
  NamedArrays arrays;
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    ASSIGN_OR_RETURN(arrays, ReadFolder(path, wanted));
  } else if (absl::EndsWith(path, ".npz")) {
    ASSIGN_OR_RETURN(arrays, ReadNpz(path, wanted));
  } else {
    ASSIGN_OR_RETURN(arrays, ReadSafetensors(path));
  }
  int64_t samples = -1;
  std::string counted;
  std::vector<HostArray> rows;
  for (const DataInput& input : inputs) {
    auto it = arrays.find(input.name);
    if (it == arrays.end()) {
      return absl::NotFoundError(absl::StrCat("'", path, "' lacks the input '", input.name, "' (",
                                              ToString(input.type), "); it has ", NamesIn(path, arrays)));
    }
    const HostArray& array = it->second;
    Shape wanted_shape = input.type.shape;
    const int axis = input.batch_axis;
    const bool rank_fits = array.type.shape.size() == wanted_shape.size();
    if (axis >= 0 && rank_fits) wanted_shape[axis] = array.type.shape[axis];
    if (!Widens(array.type.dtype, input.type.dtype) || array.type.shape != wanted_shape) {
      std::vector<std::string> dims;
      for (size_t d = 0; d < input.type.shape.size(); ++d) {
        dims.push_back(static_cast<int>(d) == axis ? "samples" : absl::StrCat(input.type.shape[d]));
      }
      return absl::InvalidArgumentError(
          absl::StrCat("'", path, "', array '", input.name, "': is ", ToString(array.type),
                       ", the model wants ", Name(input.type.dtype), "[", absl::StrJoin(dims, ","), "]"));
    }
    if (axis >= 0) {
      if (samples >= 0 && samples != array.type.shape[axis]) {
        return absl::InvalidArgumentError(absl::StrCat("'", path, "': '", input.name, "' has ",
                                                       Counted(array.type.shape[axis], "sample", "samples"),
                                                       ", '", counted, "' has ", samples));
      }
      samples = array.type.shape[axis];
      counted = input.name;
    }
    rows.push_back(array);
  }
  if (samples < 0) samples = 1;  // nothing varies
  return std::make_unique<ArrayData>(inputs, std::move(rows), samples);
}

}  // namespace pipec
