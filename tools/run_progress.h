// What piperun shows while it runs, on stderr: a bar with the time left on a terminal, lines otherwise.
#pragma once

#include <chrono>
#include <string>

#include "runtime/driver/observer.h"

namespace pipec {

class RunProgress : public RunObserver {
 public:
  RunProgress();
  ~RunProgress() override;

  void OnNote(absl::string_view line) override;
  void OnStep(const StepReport& report) override;
  void OnEvaluation(const EvaluationReport& report) override;
  void OnProgress(absl::string_view what, int64_t done, int64_t total) override;

 private:
  void Line(const std::string& text);
  void Bar(absl::string_view what, int64_t done, int64_t total, const std::string& text);

  bool terminal_;
  bool bar_shown_ = false;
  std::chrono::steady_clock::time_point begin_, drawn_;
};

}  // namespace pipec
