// Infer (evaluate.h).
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/counted.h"
#include "runtime/base/status.h"
#include "runtime/driver/batches.h"
#include "runtime/driver/eval_scalars.h"
#include "runtime/driver/evaluate.h"

namespace pipec {
namespace {

// One output of the model over all samples.
struct Collected {
  int rank = 0, port = 0;
  ManifestPort type;
  int64_t rows = 1;  // entries of the batch axis that belong to one sample
  HostArray array;
  std::shared_ptr<std::string> bytes;
};

absl::StatusOr<std::vector<Collected>> PrepareOutputs(Session& session, int64_t samples) {
  std::vector<Collected> outputs;
  for (const ManifestPort& port : session.manifest().outputs) {
    Collected row;
    row.type = port;
    bool found = false;
    for (int rank = 0; rank < session.ranks(); ++rank) {
      const plan::RankPlan& rank_plan = session.executor(rank).rank_plan();
      for (int p = 0; p < rank_plan.outputs_size() && !found; ++p) {
        if (rank_plan.outputs(p).name() != port.name) continue;
        row.rank = rank;
        row.port = p;
        found = true;
      }
    }
    if (!found)
      return absl::InvalidArgumentError(absl::StrCat("no rank delivers the output '", port.name, "'"));
    row.array.type = port.type;
    if (port.batch_axis >= 0) {
      int64_t& size = row.array.type.shape[port.batch_axis];
      row.rows = size / session.manifest().microbatch_size;
      size = samples * row.rows;
    }
    row.bytes = std::make_shared<std::string>(row.array.type.bytes(), '\0');
    row.array.bytes = *row.bytes;
    row.array.owner = row.bytes;
    outputs.push_back(std::move(row));
  }
  return outputs;
}

// Puts the first `valid` samples of a microbatch at sample `first` of the whole. What has no axis of samples
// must be the same for every microbatch: of several values none is the output's.
absl::Status Place(const Collected& output, absl::Span<const std::byte> microbatch, int64_t first,
                   int64_t valid) {
  if (microbatch.empty()) return absl::OkStatus();  // no elements, so perhaps no memory either
  if (output.type.batch_axis < 0) {
    if (first > 0 && std::memcmp(output.bytes->data(), microbatch.data(), microbatch.size()) != 0) {
      return absl::FailedPreconditionError(absl::StrCat(
          "--outputs: output '", output.type.name, "' (", ToString(output.type.type),
          ") has no axis of samples, but differs between microbatches; take it out of the model's "
          "outputs, or run one microbatch of data"));
    }
    std::memcpy(output.bytes->data(), microbatch.data(), microbatch.size());
    return absl::OkStatus();
  }
  const absl::Span<const int64_t> shape(output.type.type.shape);
  const int axis = output.type.batch_axis;
  const int64_t outer = NumElements(shape.first(axis));
  const int64_t row = NumElements(shape.subspan(axis + 1)) * SizeOf(output.type.type.dtype);
  const int64_t sample = output.rows * row, total = output.array.type.shape[axis];
  for (int64_t o = 0; o < outer; ++o) {
    std::memcpy(output.bytes->data() + o * total * row + first * sample,
                microbatch.data() + o * shape[axis] * row, valid * sample);
  }
  return absl::OkStatus();
}

// The first `count` entries of `array` along `axis`.
HostArray FirstEntries(const HostArray& array, int axis, int64_t count) {
  HostArray first;
  first.type = array.type;
  first.type.shape[axis] = count;
  const absl::Span<const int64_t> shape(array.type.shape);
  const int64_t outer = NumElements(shape.first(axis));
  const int64_t row = NumElements(shape.subspan(axis + 1)) * SizeOf(array.type.dtype);
  auto bytes = std::make_shared<std::string>();
  for (int64_t o = 0; o < outer; ++o) {
    const absl::string_view part = array.bytes.substr(o * shape[axis] * row, count * row);
    bytes->append(part.data(), part.size());
  }
  first.bytes = *bytes;
  first.owner = std::move(bytes);
  return first;
}

// Outputs that have as many entries as the data say, cut to those. The counts are no outputs of the model.
absl::Status CutToCounts(const Manifest& manifest, NamedArrays* outputs) {
  for (const ManifestCount& row : manifest.counts) {
    HostArray& output = outputs->at(row.output);
    int64_t count;
    std::memcpy(&count, outputs->at(row.count).bytes.data(), sizeof(count));
    if (count < 0 || count > output.type.shape[row.axis]) {
      return absl::DataLossError(absl::StrCat("output '", row.output, "' is said to have ",
                                              Counted(count, "entry", "entries"), " along axis ", row.axis,
                                              " of ", ToString(output.type)));
    }
    output = FirstEntries(output, row.axis, count);
  }
  for (const ManifestCount& row : manifest.counts) outputs->erase(row.count);
  return absl::OkStatus();
}

}  // namespace

absl::Status Infer(Session& session, const DataSource& data, const RunOptions& options, TraceFile* trace,
                   RunObserver& observer, RunResult* result, NamedArrays* outputs) {
  const Manifest& manifest = session.manifest();
  const int64_t batch = manifest.batch(), total = data.samples();
  if (total == 0) return absl::InvalidArgumentError("the data has no complete sample");
  std::vector<Collected> collected;
  if (outputs != nullptr) {
    if (!manifest.counts.empty() && total != batch) {
      return absl::FailedPreconditionError(
          absl::StrCat("--outputs: how many entries output '", manifest.counts[0].output, "' has along axis ",
                       manifest.counts[0].axis, " depends on the data of a batch of ",
                       Counted(batch, "sample", "samples"), ", but the data has ", total,
                       "; give one batch of data, or compile the model with --batch=", total));
    }
    ASSIGN_OR_RETURN(collected, PrepareOutputs(session, total));
  }
  std::vector<int64_t> samples(batch);
  std::vector<StepScalars> scalars;
  const auto begin = std::chrono::steady_clock::now();
  for (int64_t at = 0; at < total; at += batch) {
    if (options.stop != nullptr && *options.stop) {
      return absl::CancelledError(
          absl::StrCat("interrupted after ", at, " of ", Counted(total, "sample", "samples")));
    }
    const int64_t valid = FillInOrder(total, at / batch, absl::MakeSpan(samples));
    SetEvalScalars(manifest, options.seed, 0, valid, &scalars);
    ASSIGN_OR_RETURN(const StepResult done, session.Run(StepKind::kEval, data, samples, scalars));
    if (done.first.found && done.first.origin) {
      return absl::FailedPreconditionError(absl::StrCat(
          "NaN or infinity first came in stage ", done.first.stage, ", node '", done.first.node, "' (",
          done.first.op, "), samples from ", at + done.first.microbatch * manifest.microbatch_size));
    }
    for (const Collected& output : collected) {
      for (int m = 0; m < manifest.microbatches && scalars[m].valid_samples > 0; ++m) {
        RETURN_IF_ERROR(Place(output, session.feed(output.rank).Output(output.port, m),
                              at + scalars[m].first_sample, scalars[m].valid_samples));
      }
    }
    ++result->steps;
    result->samples += valid;
    if (trace != nullptr) trace->Add(session, StepKind::kEval, result->steps);
    observer.OnProgress("inference", result->samples, total);
  }
  result->seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  for (Collected& output : collected) (*outputs)[output.type.name] = std::move(output.array);
  return outputs != nullptr ? CutToCounts(manifest, outputs) : absl::OkStatus();
}

}  // namespace pipec
