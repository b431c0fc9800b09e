// The samples as a user runs them: digits, MLP and CNN with three seeds each (medians), then the novel. Prints
// what they learn on data they never saw and how long they take, from the model to the evaluation.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/bench/figures.h"
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

void Digits(const ScratchFolder& folder, const std::string& model, const std::string& figure) {
  std::vector<double> accuracies, seconds;
  for (const char* seed : {"0", "1", "2"}) {
    const Outcome digits =
        MustRun({"/bin/bash", PIPEC_SOURCE_DIR "/samples/digits/run.sh", folder / model, seed, model});
    accuracies.push_back(NumberIn(digits.out, "before, ", " % after"));
    seconds.push_back(digits.seconds);
  }
  std::printf("%s_accuracy %.2f %%\n", figure.c_str(), Median(accuracies));
  std::printf("%s_seconds %.1f s\n", figure.c_str(), Median(seconds));
}

void Run() {
  // The samples shall use the programs beside this one.
  setenv("PIPEC_BIN", std::filesystem::read_symlink("/proc/self/exe").parent_path().c_str(), 1);
  const ScratchFolder folder;
  Digits(folder, "mlp", "digits");
  Digits(folder, "cnn", "digits_cnn");
  const Outcome gpt = MustRun({"/bin/bash", PIPEC_SOURCE_DIR "/samples/gpt/run.sh", folder / "gpt"});
  std::printf("gpt_loss %.3f nats/character\n", NumberIn(gpt.out, "before, ", " after\naccuracy"));
  std::printf("gpt_seconds %.1f s\n", gpt.seconds);
}

}  // namespace
}  // namespace pipec::bench

int main() { pipec::bench::Run(); }
