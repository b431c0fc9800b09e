// What late updates cost: the samples' models on four ranks, with as many samples, batches and seeds alike, trained
// synchronously, with pipedream and with pipedream-2bw, with and without the learning rate scaled by delay. Loss and
// accuracy on data that they never saw, medians of three seeds. A text model that shares its embedding with its head
// (gpt) cannot be trained by pipedream, which says so.
//   bench-convergence [--seeds=N]
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/bench/figures.h"
#include "tests/bench/run_program.h"

namespace pipec::bench {
namespace {

using Words = std::vector<std::string>;

struct Task {
  std::string name;
  Words model, data, run;
};

struct Way {
  std::string name;
  Words flags;
};

Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::vector<Task> Tasks(const ScratchFolder& folder) {
  const std::string digits = PIPEC_SOURCE_DIR "/samples/digits/digits.csv.gz";
  const std::string novel = PIPEC_SOURCE_DIR "/samples/gpt/pride_and_prejudice.txt";
  const Words npz = {"--data=" + folder / "train.npz", "--eval-data=" + folder / "eval.npz"};
  const Words images = {"--data=" + folder / "images.npz", "--eval-data=" + folder / "eval_images.npz"};
  const Words text = {"--data=" + folder / "train.bin", "--eval-data=" + folder / "eval.bin", "--tokens=u8"};
  return {
      {"digits_mlp",
       {"mlp", "--layers=4", "--inputs=64", "--hidden=256", "--classes=10"},
       {"digits", digits, "-o", folder / "train.npz", "--eval=" + folder / "eval.npz"},
       npz + Words{"--epochs=10", "--lr=3e-3", "--lr-schedule=cosine"}},
      {"digits_cnn",
       {"cnn", "--layers=4", "--image=1x8x8", "--hidden=32", "--classes=10"},
       {"digits", digits, "--images", "-o", folder / "images.npz", "--eval=" + folder / "eval_images.npz"},
       images + Words{"--epochs=5", "--lr=3e-3", "--lr-schedule=cosine"}},
      {"gpt",
       {"gpt", "--layers=4", "--hidden=64", "--heads=4", "--sequence=32", "--vocabulary=75"},
       {"text", novel, "-o", folder / "train.bin", "--eval=" + folder / "eval.bin"},
       text + Words{"--steps=400", "--lr=3e-3", "--lr-schedule=one-cycle"}},
      {"llama",
       {"llama", "--layers=4", "--hidden=64", "--heads=4", "--sequence=32", "--vocabulary=75"},
       {"text", novel, "-o", folder / "train.bin", "--eval=" + folder / "eval.bin"},
       text + Words{"--steps=400", "--lr=3e-3", "--lr-schedule=one-cycle"}},
  };
}

const std::vector<Way>& Ways() {
  // Every step is one batch of 32 samples and one update, whatever the schedule.
  static const auto* const ways = new std::vector<Way>{
      {"1f1b", {"--schedule=1f1b", "--microbatches=4"}},
      {"2bw", {"--schedule=pipedream-2bw", "--microbatches=4"}},
      {"2bw_lr", {"--schedule=pipedream-2bw", "--microbatches=4", "--staleness=lr"}},
      {"pipedream", {"--schedule=pipedream", "--microbatches=1"}},
      {"pipedream_lr", {"--schedule=pipedream", "--microbatches=1", "--staleness=lr"}},
  };
  return *ways;
}

struct Learnt {
  double loss = 0, accuracy = 0;  // accuracy in percent
};

// Nothing if the compiler refuses.
std::optional<Learnt> Train(const ScratchFolder& folder, const Task& task, const Way& way, int seed) {
  const std::string plan = folder / "plan";
  if (RunProgram(Words{"pipec", folder / "model.onnx", "--stages=4", "--batch=32", "--json", "-o", plan} +
                 way.flags)
          .exit_code != 0)
    return std::nullopt;
  const Outcome run = MustRun(
      Words{"piperun", plan, "--shuffle", absl::StrCat("--seed=", seed), "--threads=1", "--json"} + task.run);
  const nlohmann::json evaluation = nlohmann::json::parse(run.out).at("evaluations").back();
  return Learnt{evaluation.at("loss"), 100 * evaluation.value("accuracy", 0.0)};
}

void Run(int seeds) {
  const ScratchFolder folder;
  std::vector<std::string> figures;
  for (const Task& task : Tasks(folder)) {
    MustRun(Words{"make-data"} + task.data);
    std::printf("%-14s %12s %12s\n", task.name.c_str(), "loss", "accuracy");
    for (const Way& way : Ways()) {
      std::vector<double> losses, accuracies;
      for (int seed = 0; seed < seeds; ++seed) {
        MustRun(Words{"make-model"} + task.model +
                Words{"--batch=symbolic", absl::StrCat("--seed=", seed), "-o", folder / "model.onnx"});
        const std::optional<Learnt> learnt = Train(folder, task, way, seed);
        if (!learnt) break;
        losses.push_back(learnt->loss);
        accuracies.push_back(learnt->accuracy);
      }
      if (losses.empty()) {
        std::printf("  %-12s %12s\n", way.name.c_str(), "refused");
        continue;
      }
      std::printf("  %-12s %12.4f %10.2f %%\n", way.name.c_str(), Median(losses), Median(accuracies));
      figures.push_back(absl::StrCat(task.name, "_", way.name, "_loss ", Median(losses), " nats"));
    }
  }
  for (const std::string& figure : figures) std::printf("%s\n", figure.c_str());
}

}  // namespace
}  // namespace pipec::bench

int main(int argc, char** argv) {
  int seeds = 3;
  if (argc > 1 && (argc > 2 || std::sscanf(argv[1], "--seeds=%d", &seeds) != 1 || seeds < 1)) {
    std::fprintf(stderr, "bench-convergence [--seeds=N]\n");
    return 2;
  }
  pipec::bench::Run(seeds);
}
