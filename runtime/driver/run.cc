#include "runtime/driver/run.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/process_memory.h"
#include "runtime/base/status.h"
#include "runtime/data/npz.h"
#include "runtime/driver/evaluate.h"
#include "runtime/driver/export.h"
#include "runtime/driver/profile_file.h"
#include "runtime/driver/train.h"
#include "runtime/plan/load.h"

namespace pipec {
namespace {

// Whether something can be made there: asked before the run, so that no run is lost to it.
absl::Status CheckParent(absl::string_view flag, const std::string& path) {
  std::filesystem::path whole = std::filesystem::absolute(path);
  if (!whole.has_filename()) whole = whole.parent_path();
  const std::string directory = whole.parent_path();
  if (access(directory.c_str(), W_OK) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("--", flag, ": cannot write into '", directory, "'"));
}

absl::Status CheckFile(absl::string_view flag, const std::string& path) {
  if (path.empty()) return absl::OkStatus();
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    return absl::InvalidArgumentError(absl::StrCat("--", flag, ": '", path, "' is a directory"));
  return CheckParent(flag, path);
}

// What a plan of this mode can do.
absl::Status CheckOptions(const std::string& directory, const Manifest& manifest, const RunOptions& options) {
  for (const auto& [flag, path] :
       {std::pair("metrics", &options.metrics), std::pair("trace", &options.trace),
        std::pair("profile", &options.profile), std::pair("outputs", &options.outputs)}) {
    RETURN_IF_ERROR(CheckFile(flag, *path));
    for (const auto& [other, data] :
         {std::pair("data", &options.data), std::pair("eval-data", &options.eval_data)}) {
      std::error_code none;
      if (!path->empty() && std::filesystem::equivalent(*path, *data, none))
        return absl::InvalidArgumentError(absl::StrCat("--", flag, ": '", *path, "' is the file of --", other));
    }
  }
  if (manifest.mode == "train" && !options.outputs.empty()) {
    return absl::InvalidArgumentError("--outputs: this plan trains; compile with --mode=infer for outputs");
  }
  if (manifest.mode == "infer" && (!options.export_directory.empty() || !options.eval_data.empty())) {
    return absl::InvalidArgumentError(
        "--export and --eval-data: this plan only infers; compile with --mode=train");
  }
  if (manifest.mode == "infer" && !options.metrics.empty())
    return absl::InvalidArgumentError("--metrics: this plan only infers, and has neither steps nor a loss");
  if (manifest.mode == "train") RETURN_IF_ERROR(CheckUsed(options.hyperparameters, manifest.optimizer));
  if (options.export_directory.empty()) return absl::OkStatus();
  if (!std::filesystem::exists(directory + "/export.onnx")) {
    return absl::NotFoundError(
        absl::StrCat("--export: '", directory, "/export.onnx' is missing from the plan"));
  }
  RETURN_IF_ERROR(CheckExportDirectory(options.export_directory));
  return CheckParent("export", options.export_directory);
}

absl::Status CheckClipNorm(Session& session, const RunOptions& options) {
  for (int rank = 0; rank < session.ranks(); ++rank) {
    if (session.executor(rank).rank_plan().gradient_norm() >= 0) return absl::OkStatus();
  }
  if (session.manifest().mode != "train" || options.hyperparameters.clip_norm == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--clip-norm: with schedule ", session.manifest().schedule,
      " every stage updates by itself and nobody knows the norm of all gradients; --clip-value works, or a plan of "
      "schedule pipedream-2bw"));
}

}  // namespace

absl::StatusOr<RunResult> RunPlan(const std::string& directory, const RunOptions& options,
                                  const MakeDevice& make_device, const MakeTransport& make_transport,
                                  RunObserver& observer) {
  constexpr int64_t kSyntheticBatches = 16;  // an epoch of synthetic data
  ASSIGN_OR_RETURN(const Manifest manifest, LoadManifest(directory));
  RETURN_IF_ERROR(CheckOptions(directory, manifest, options));
  if (!options.export_directory.empty() && std::filesystem::exists(options.export_directory))
    observer.OnNote(absl::StrCat("--export replaces the model in '", options.export_directory, "'"));
  ExecutorOptions executor = options.executor;
  executor.trace = !options.trace.empty();
  executor.profile = !options.profile.empty();
  const absl::StatusOr<int64_t> memory_before = OwnMemoryBytes();
  ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                   Session::Open(directory, manifest, make_device, make_transport, executor));

  RETURN_IF_ERROR(CheckClipNorm(*session, options));

  const DataOptions data_options{options.tokens, options.seed, kSyntheticBatches * manifest.batch()};
  ASSIGN_OR_RETURN(const std::unique_ptr<DataSource> data,
                   OpenData(options.data, session->inputs(), data_options));
  std::unique_ptr<DataSource> eval_data;
  if (!options.eval_data.empty()) {
    ASSIGN_OR_RETURN(eval_data, OpenData(options.eval_data, session->inputs(), data_options));
  }

  RunResult result;
  result.mode = manifest.mode;
  for (int rank = 0; rank < session->ranks(); ++rank) {
    result.arena_bytes.push_back(static_cast<int64_t>(session->executor(rank).rank_plan().arena_bytes()));
    result.workspace_bytes.push_back(session->executor(rank).workspace_bytes());
  }
  TraceFile trace;
  NamedArrays outputs;
  if (manifest.mode == "train") {
    const absl::Status trained = Train(*session, options, *data, eval_data.get(),
                                       executor.trace ? &trace : nullptr, observer, &result);
    if (absl::IsCancelled(trained) && !options.export_directory.empty()) {
      // Interrupted between two steps: what was learnt so far is not lost.
      RETURN_IF_ERROR(ExportModel(*session, options.export_directory));
      return absl::CancelledError(absl::StrCat(
          trained.message(), "; --export: what was learnt so far is in '", options.export_directory, "'"));
    }
    RETURN_IF_ERROR(trained);
  } else {
    RETURN_IF_ERROR(Infer(*session, *data, options, executor.trace ? &trace : nullptr, observer, &result,
                          options.outputs.empty() ? nullptr : &outputs));
  }
  const absl::StatusOr<int64_t> memory_now = OwnMemoryBytes();
  if (memory_before.ok() && memory_now.ok()) result.grown_bytes = *memory_now - *memory_before;
  if (!options.outputs.empty()) RETURN_IF_ERROR(WriteNpz(options.outputs, outputs));
  if (executor.trace) RETURN_IF_ERROR(trace.Write(*session, options.trace));
  if (executor.profile) RETURN_IF_ERROR(WriteProfile(*session, options.threads, options.profile));
  if (!options.export_directory.empty()) RETURN_IF_ERROR(ExportModel(*session, options.export_directory));
  return result;
}

}  // namespace pipec
