#include "tools/run_progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/counted.h"

namespace pipec {
namespace {

constexpr int64_t kLines = 50;  // of a run that is not watched on a terminal
constexpr int kBarWidth = 24;

std::string Duration(double seconds) {
  const int64_t s = static_cast<int64_t>(seconds);
  if (s < 60) return absl::StrFormat("%ds", s);
  if (s < 3600) return absl::StrFormat("%dm%02ds", s / 60, s % 60);
  return absl::StrFormat("%dh%02dm", s / 3600, s % 3600 / 60);
}

}  // namespace

RunProgress::RunProgress()
    : terminal_(isatty(STDERR_FILENO) != 0), begin_(std::chrono::steady_clock::now()) {}

RunProgress::~RunProgress() {
  if (bar_shown_) std::fputc('\n', stderr);
}

void RunProgress::Line(const std::string& text) {
  std::fprintf(stderr, "%s%s\n", bar_shown_ ? "\r\033[K" : "", text.c_str());
  bar_shown_ = false;
}

void RunProgress::Bar(absl::string_view what, int64_t done, int64_t total, const std::string& text) {
  const auto now = std::chrono::steady_clock::now();
  if (done < total && now - drawn_ < std::chrono::milliseconds(100)) return;
  drawn_ = now;
  const double elapsed = std::chrono::duration<double>(now - begin_).count();
  const double left =
      elapsed * static_cast<double>(total - done) / static_cast<double>(std::max<int64_t>(done, 1));
  const int filled = static_cast<int>(kBarWidth * done / std::max<int64_t>(total, 1));
  std::fprintf(stderr, "\r\033[K%s [%s%s] %ld/%ld%s, %s left", std::string(what).c_str(),
               std::string(filled, '#').c_str(), std::string(kBarWidth - filled, '.').c_str(),
               static_cast<long>(done), static_cast<long>(total), text.c_str(), Duration(left).c_str());
  std::fflush(stderr);
  bar_shown_ = true;
}

void RunProgress::OnNote(absl::string_view line) { Line(std::string(line)); }

void RunProgress::OnStep(const StepReport& report) {
  if (report.step == 1) begin_ = std::chrono::steady_clock::now();
  std::string text = report.loss ? absl::StrFormat("  loss %.4f", *report.loss) : "  no loss";
  absl::StrAppendFormat(&text, "  lr %.3g", report.lr);
  if (report.gradient_norm.has_value()) absl::StrAppendFormat(&text, "  norm %.3g", *report.gradient_norm);
  if (report.loss_scale.has_value()) absl::StrAppendFormat(&text, "  scale %.4g", *report.loss_scale);
  if (report.skipped) absl::StrAppend(&text, "  step skipped: gradients overflowed");
  absl::StrAppendFormat(&text, "  %.4g samples/s", report.samples_per_second);
  if (terminal_) {
    Bar("step", report.step, report.steps, text);
  } else if (report.step % std::max<int64_t>(1, report.steps / kLines) == 0 || report.step == 1 ||
             report.step == report.steps || report.skipped) {
    Line(absl::StrCat("step ", report.step, "/", report.steps, text));
  }
}

void RunProgress::OnEvaluation(const EvaluationReport& report) {
  std::string text = absl::StrFormat("evaluation after step %d: ", report.step);
  absl::StrAppend(&text, report.loss ? absl::StrFormat("loss %.6f", *report.loss) : "no loss");
  if (report.accuracy.has_value()) absl::StrAppendFormat(&text, ", accuracy %.2f %%", *report.accuracy * 100);
  Line(absl::StrCat(text, ", ", Counted(report.samples, "sample", "samples")));
}

void RunProgress::OnProgress(absl::string_view what, int64_t done, int64_t total) {
  if (terminal_) Bar(what, done, total, " samples");
}

}  // namespace pipec
