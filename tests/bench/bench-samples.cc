// The samples as a user runs them: digits with three seeds, then the novel. Prints what they learn on data
// they never saw and how long they take, from the model to the evaluation.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/bench/run_program.h"

namespace pipec::bench {
namespace {

// The last number between `before` and `after` in the text.
double NumberIn(const std::string& text, const std::string& before, const std::string& after) {
  const size_t end = text.rfind(after);
  const size_t begin = end == std::string::npos ? end : text.rfind(before, end);
  if (begin == std::string::npos) {
    std::fprintf(stderr, "bench-samples: no '%s...%s' in\n%s", before.c_str(), after.c_str(), text.c_str());
    std::exit(1);
  }
  return std::atof(text.c_str() + begin + before.size());
}

void Run() {
  const ScratchFolder folder;
  std::vector<double> accuracies, seconds;
  for (const char* seed : {"0", "1", "2"}) {
    const Outcome digits =
        MustRun({"/bin/bash", PIPEC_SOURCE_DIR "/samples/digits/run.sh", folder / "digits", seed});
    accuracies.push_back(NumberIn(digits.out, "before, ", " % after"));
    seconds.push_back(digits.seconds);
  }
  const Outcome gpt = MustRun({"/bin/bash", PIPEC_SOURCE_DIR "/samples/gpt/run.sh", folder / "gpt"});
  std::printf("digits_accuracy %.2f %%\n", Median(accuracies));
  std::printf("digits_seconds %.1f s\n", Median(seconds));
  std::printf("gpt_loss %.3f nats/character\n", NumberIn(gpt.out, "before, ", " after\naccuracy"));
  std::printf("gpt_seconds %.1f s\n", gpt.seconds);
}

}  // namespace
}  // namespace pipec::bench

int main() { pipec::bench::Run(); }
