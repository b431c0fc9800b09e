// --metrics: one JSON object a step. Nothing in it depends on time, so that files of two runs compare byte
// for byte.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/driver/observer.h"

namespace pipec {

class MetricsFile {
 public:
  // An empty path makes a file that swallows everything. An existing file is replaced.
  static absl::StatusOr<MetricsFile> Open(const std::string& path);
  // {"step": 1, "loss": 2.30258512, "lr": 0.00100000005, "grad_norm": 1.5}: floats with 9 significant digits,
  // written when the call returns, null where they are not finite or there is none; with dynamic loss scaling
  // "loss_scale" and "skipped_steps" besides. If the disk is full, the lines before this one stay.
  absl::Status Write(const StepReport& report);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  int64_t written_ = 0;  // bytes of whole lines
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace pipec
