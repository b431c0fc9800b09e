#include "runtime/driver/metrics_file.h"

#include <unistd.h>

#include <cerrno>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace pipec {
namespace {

// JSON has neither NaN nor infinity.
std::string Number(std::optional<double> value) {
  return value && std::isfinite(*value) ? absl::StrFormat("%.9g", *value) : "null";
}

}  // namespace

absl::StatusOr<MetricsFile> MetricsFile::Open(const std::string& path) {
  MetricsFile metrics;
  if (path.empty()) return metrics;
  metrics.path_ = path;
  metrics.file_.reset(std::fopen(path.c_str(), "we"));
  if (metrics.file_ == nullptr) return absl::ErrnoToStatus(errno, absl::StrCat("cannot create '", path, "'"));
  std::setvbuf(metrics.file_.get(), nullptr, _IONBF, 0);
  return metrics;
}

absl::Status MetricsFile::Write(const StepReport& report) {
  if (file_ == nullptr) return absl::OkStatus();
  std::string line = absl::StrFormat("{\"step\": %d, \"loss\": %s, \"lr\": %.9g", report.step,
                                     Number(report.loss), report.lr);
  if (report.gradient_norm.has_value())
    absl::StrAppend(&line, ", \"grad_norm\": ", Number(report.gradient_norm));
  if (report.loss_scale.has_value()) {
    absl::StrAppendFormat(&line, ", \"loss_scale\": %.9g, \"skipped_steps\": %d", *report.loss_scale,
                          report.skipped_steps);
  }
  line += "}\n";
  if (std::fwrite(line.data(), 1, line.size(), file_.get()) != line.size()) {
    const int error = errno;
    // What stays are whole lines; of a pipe or a device there is nothing to take back.
    if (ftruncate(fileno(file_.get()), written_) != 0) errno = error;
    return absl::ErrnoToStatus(error, absl::StrCat("cannot write '", path_, "'"));
  }
  written_ += static_cast<int64_t>(line.size());
  return absl::OkStatus();
}

}  // namespace pipec
