// The figures of a GPU: tokens a second of one rank, what share of the GPU's dense peak that is, how several ranks
// that share the GPU compare with one of the same accumulation, whether memory is what the plan says and, with
// --torch, the ratio to PyTorch's compiled step on the same GPU. Runs are taken A B A B. With --nsys, what share of
// the steps' time the GPU stands still between kernels (in a run that nsys watches, so rather more than else).
//
//   bench-cuda [--model="gpt --preset=gpt-124m"] [--tokens=1024] [--batch=64] [--microbatches=8] [--precision=bf16]
//              [--ranks=4] [--steps=10] [--pairs=15] [--torch=PYTHON:SCRIPT] [--nsys=PROGRAM]
//
// Steps are timed once they are graphs; of the first four, two go piece by piece and two are captured.
// The last lines: tokens_per_second, share_of_dense_peak, peak_memory_over_plan, launch_gaps, ranks_on_one_gpu
// (with _low and _high) and over_pytorch (likewise).
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/bench/figures.h"
#include "tests/bench/gpu_trace.h"
#include "tests/bench/run_program.h"

namespace pipec::bench {
namespace {

using nlohmann::json;
using Flags = std::map<std::string, std::string>;

// Steps. Each of the two blocks of a step's inputs has a graph of its own, captured the second time.
constexpr int kWarmUp = 4;
constexpr int kMostSteps = 50 - kWarmUp;  // of more piperun does not print every one

// Dense, without sparsity, of an H100 or H200 SXM (NVIDIA's data sheet), in FLOP/s.
double DensePeak(const std::string& precision) { return precision == "fp32" ? 67e12 : 989e12; }

struct Plan {
  std::string path;
  double flop = 0;  // of a step
  double peak_bytes = 0;
};

Plan Compile(const ScratchFolder& folder, const Flags& flags, const std::string& ranks) {
  Plan plan{folder / (ranks + ".plan")};
  const json made = json::parse(
      MustRun({"pipec", folder / "m.onnx", "--device=h200", "--stages=" + ranks,
               "--batch=" + flags.at("batch"), "--microbatches=" + flags.at("microbatches"),
               "--precision=" + flags.at("precision"), "--recompute=none", "--json", "-o", plan.path})
          .out);
  for (const json& stage : made["stages"])
    plan.flop += stage["flop"].get<double>() * std::stod(flags.at("microbatches"));
  plan.peak_bytes = made["peak_bytes"];
  return plan;
}

struct Measured {
  double tokens_per_second, arena_bytes;
};

// piperun as another program starts it.
std::vector<std::string> TrainCommand(const Plan& plan, const Flags& flags) {
  return {std::filesystem::read_symlink("/proc/self/exe").parent_path() / "piperun", plan.path,
          "--device=cuda", "--data=synthetic",
          absl::StrCat("--steps=", kWarmUp + std::atoi(flags.at("steps").c_str()))};
}

// Samples a second over all steps behind the first kWarmUp, by the lines of progress.
double SteadyRate(const std::string& log) {
  static const std::regex line("step ([0-9]+)/[0-9]+ .* ([0-9.e+]+) samples/s");
  double steps = 0, seconds_a_sample = 0;
  for (std::sregex_iterator at(log.begin(), log.end(), line), end; at != end; ++at) {
    if (std::stoi((*at)[1]) <= kWarmUp) continue;
    ++steps;
    seconds_a_sample += 1 / std::stod((*at)[2]);
  }
  return steps / seconds_a_sample;
}

Measured Train(const ScratchFolder& folder, const Plan& plan, const Flags& flags) {
  const std::string log = folder / "progress";
  std::vector<std::string> words = {"/bin/bash", "-c", R"("$@" 2>"$0"; code=$?; cat "$0" >&2; exit $code)",
                                    log};
  for (std::string& word : TrainCommand(plan, flags)) words.push_back(std::move(word));
  words.push_back("--json");
  const json run = json::parse(MustRun(words).out);
  double largest = 0;
  for (const json& bytes : run["arena_bytes"]) largest = std::max(largest, bytes.get<double>());
  std::ifstream file(log);
  const std::string lines{std::istreambuf_iterator<char>(file), {}};
  return {SteadyRate(lines) * std::stod(flags.at("tokens")), largest};
}

std::optional<double> LaunchGaps(const ScratchFolder& folder, const Plan& plan, const Flags& flags) {
  const std::string trace = folder / "gpu.nsys-rep";
  std::vector<std::string> words = {flags.at("nsys"),          "profile",          "--trace=cuda",
                                    "--cuda-graph-trace=node", "--sample=none",    "--cpuctxsw=none",
                                    "--force-overwrite=true",  "--output=" + trace};
  for (std::string& word : TrainCommand(plan, flags)) words.push_back(std::move(word));
  MustRun(words);
  return IdleShare(
      MustRun({flags.at("nsys"), "stats", "--report", "cuda_gpu_trace", "--format", "csv", trace}).out);
}

void Run(const Flags& flags) {
  const ScratchFolder folder;
  std::vector<std::string> make = {"make-model"};
  for (absl::string_view word : absl::StrSplit(flags.at("model"), ' ')) make.emplace_back(word);
  make.insert(make.end(), {"-o", folder / "m.onnx"});
  MustRun(make);
  const Plan one = Compile(folder, flags, "1"), many = Compile(folder, flags, flags.at("ranks"));
  std::unique_ptr<Companion> torch;
  if (!flags.at("torch").empty()) {
    std::vector<std::string> words = absl::StrSplit(flags.at("torch"), ':');
    for (const char* name : {"batch", "microbatches", "tokens", "steps", "precision"})
      words.push_back(flags.at(name));
    torch = std::make_unique<Companion>(words);
    std::fprintf(stderr, "%s\n", torch->ReadLine().c_str());
  }
  std::vector<double> tokens, shared, against;
  Measured alone{};
  for (int pair = 0; pair < std::atoi(flags.at("pairs").c_str()); ++pair) {
    alone = Train(folder, one, flags);
    tokens.push_back(alone.tokens_per_second);
    shared.push_back(Train(folder, many, flags).tokens_per_second / alone.tokens_per_second);
    if (torch != nullptr) against.push_back(alone.tokens_per_second / std::stod(torch->Ask("step")));
    std::fprintf(stderr, "pair %d: %.0f tokens/s, %s ranks %.3f of that\n", pair + 1, tokens.back(),
                 flags.at("ranks").c_str(), shared.back());
  }
  const double rate = Median(tokens),
               step_seconds = std::stod(flags.at("batch")) * std::stod(flags.at("tokens")) / rate;
  std::printf("tokens_per_second %.6g tokens/s\n", rate);
  std::printf("share_of_dense_peak %.4f %%\n",
              100 * one.flop / step_seconds / DensePeak(flags.at("precision")));
  std::printf("peak_memory_over_plan %.6f ratio\n", alone.arena_bytes / one.peak_bytes);
  if (!flags.at("nsys").empty()) {
    if (const std::optional<double> gaps = LaunchGaps(folder, one, flags))
      std::printf("launch_gaps %.4f %%\n", 100 * *gaps);
  }
  PrintRatios("ranks_on_one_gpu", shared);
  if (torch != nullptr) PrintRatios("over_pytorch", against);
}

}  // namespace
}  // namespace pipec::bench

int main(int argc, char** argv) {
  pipec::bench::Flags flags = {{"model", "gpt --preset=gpt-124m"},
                               {"tokens", "1024"},
                               {"batch", "64"},
                               {"microbatches", "8"},
                               {"precision", "bf16"},
                               {"ranks", "4"},
                               {"steps", "10"},
                               {"pairs", "15"},
                               {"torch", ""},
                               {"nsys", ""}};
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const size_t equal = word.find('=');
    const auto flag = word.rfind("--", 0) == 0 && equal != std::string::npos
                          ? flags.find(word.substr(2, equal - 2))
                          : flags.end();
    if (flag == flags.end()) {
      std::fprintf(stderr, "bench-cuda: %s: the head of bench-cuda.cc says what it takes\n", argv[i]);
      return 2;
    }
    flag->second = word.substr(equal + 1);
  }
  if (const int steps = std::atoi(flags["steps"].c_str()); steps < 1 || steps > pipec::bench::kMostSteps) {
    std::fprintf(stderr, "bench-cuda: --steps is 1 to %d\n", pipec::bench::kMostSteps);
    return 2;
  }
  pipec::bench::Run(flags);
}
