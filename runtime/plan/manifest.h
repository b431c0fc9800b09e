// manifest.json: what all ranks of a plan have in common, and the hash of every file (FORMAT.md, "Manifest").
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/base/tensor_type.h"

namespace pipec {

inline constexpr int kPlanFormat = 2;

// An input or output of the model.
struct ManifestPort {
  std::string name;
  TensorType type;     // of one microbatch
  int batch_axis = 0;  // -1: the same for every microbatch
  int64_t bound = 0;   // integer inputs: values lie in [0, bound); 0: not known
};

// An output whose size depends on data: of its entries along `axis` the first are there, as many as the output
// `count`, an int64 scalar, says after each run.
struct ManifestCount {
  std::string output;
  int axis = 0;
  std::string count;
};

// An initial value of the model: where it starts out. Every initializer that the model keeps outside
// model.onnx.
struct ManifestParameter {
  std::string name;
  TensorType type;   // the model's own, as in `file`
  std::string file;  // relative to the plan, or absolute for linked data
  int64_t offset = 0;
  std::string hash;  // of the linked bytes; "" inside the plan, where `files` has the hash of the whole
  std::string
      tied_to;  // the parameter of which this is one more name, exported with its value; "" if it is none

  bool linked() const { return !file.empty() && file.front() == '/'; }
};

// A weight that an export writes as its value plus a b, or the transpose of that: parameters a [in, rank] and
// b [rank, out], which the model itself has not.
struct ManifestLowRank {
  std::string weight, a, b;
  bool transposed = false;
};

struct ManifestFile {
  std::string path;  // relative to the plan
  int64_t bytes = 0;
  std::string hash;  // HashBytes
};

// One of the user's own files that parameters are linked into: what it was when pipec took their hashes. As
// long as it is that, the hashes need not be taken again.
struct ManifestLink {
  std::string path;  // absolute
  int64_t bytes = 0;
  int64_t modified_ns = 0;  // since 1970
};

// What a message from stage to stage, activations or gradients, takes on the wire in the modelled timeline.
struct ManifestMessage {
  int from_stage = 0;
  int to_stage = 0;
  int64_t modelled_ns = 0;
};

struct Manifest {
  int format = kPlanFormat;
  std::string pipec_version;
  std::string model;
  std::string mode;  // train, infer
  std::string schedule;
  std::string optimizer;  // "" in mode infer
  std::string precision = "fp32";  // what is computed in: fp32, bf16, fp16, whose gradients are scaled
  int ranks = 1;
  int virtual_stages = 1;
  int microbatches = 1;
  int64_t microbatch_size = 1;
  int replicas = 1;
  std::string labels;  // the input that holds labels; "" if there is none
  std::vector<ManifestPort> inputs;
  std::vector<ManifestPort> outputs;
  std::vector<ManifestCount> counts;  // of one microbatch a batch only
  std::vector<ManifestParameter> parameters;  // in the model's order
  std::vector<ManifestLowRank> low_rank;      // --lora
  std::vector<ManifestMessage> messages;      // between ranks
  std::vector<ManifestFile> files;            // all but manifest.json itself
  std::vector<ManifestLink> links;            // one a file

  int64_t batch() const { return microbatch_size * microbatches * replicas; }
};

// "rank-000.plan".
std::string RankFileName(int rank);

// Path is that of the file on disk, `name` what the plan calls it.
absl::StatusOr<ManifestFile> DescribeFile(const std::string& path, absl::string_view name);

std::string ToJson(const Manifest& manifest);
// Whether some version of pipec wrote this as a manifest; it need not be of a form that ParseManifest reads.
bool IsManifestOfAnyVersion(absl::string_view json);
// Refuses missing, surplus or senseless fields, counts of what is not there or cannot be counted, paths that leave
// the plan, and fields that are not those whose hash stands beside them. InvalidArgument, without the file's name.
absl::StatusOr<Manifest> ParseManifest(absl::string_view json);

}  // namespace pipec
