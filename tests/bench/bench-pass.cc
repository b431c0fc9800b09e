// What passes bring: the time of a step of a model on one rank of the CPU, one thread, with them and without
// (--disable-pass), taken by turns, and the plans' peak memory.
//
//   bench-pass PASS[,PASS...] MODEL [--pairs=15] [--steps=4] [flags of pipec]
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tests/bench/figures.h"
#include "tests/bench/run_program.h"
#include "tests/bench/traced_run.h"

namespace pipec::bench {
namespace {

int Main(int argc, char** argv) {
  int pairs = 15, steps = 4;
  std::vector<std::string> flags;
  for (int i = 3; i < argc; ++i) {
    absl::string_view word = argv[i];
    if (absl::ConsumePrefix(&word, "--pairs=") && absl::SimpleAtoi(word, &pairs) && pairs > 0) continue;
    if (absl::ConsumePrefix(&word, "--steps=") && absl::SimpleAtoi(word, &steps) && steps > 2) continue;
    flags.push_back(argv[i]);
  }
  if (argc < 3) {
    std::fprintf(stderr, "usage: bench-pass PASS[,PASS...] MODEL [--pairs=N] [--steps=N] [flags of pipec]\n");
    return 2;
  }
  const ScratchFolder folder;
  const auto compile = [&](const std::string& name, const std::vector<std::string>& disabled) {
    std::vector<std::string> words = {"pipec", argv[2], "--stages=1", "--json", "-o", folder / name};
    words.insert(words.end(), flags.begin(), flags.end());
    for (const std::string& pass : disabled) words.push_back(absl::StrCat("--disable-pass=", pass));
    std::printf("%s_peak %.1f MB\n", name.c_str(),
                nlohmann::json::parse(MustRun(words).out)["peak_bytes"].get<double>() / 1e6);
    return folder / name;
  };
  const std::string with = compile("with", {}), without = compile("without", absl::StrSplit(argv[1], ','));
  const auto measure = [&](const std::string& plan) {
    MustRun({"piperun", plan, "--data=synthetic", "--threads=1", absl::StrCat("--steps=", steps),
             absl::StrCat("--trace=", folder / "trace.json")});
    return Median(ReadTrace(folder / "trace.json").periods);
  };
  std::vector<double> with_seconds, without_seconds, ratios;
  for (int pair = 0; pair < pairs; ++pair) {
    with_seconds.push_back(measure(with));
    without_seconds.push_back(measure(without));
    ratios.push_back(with_seconds.back() / without_seconds.back());
  }
  std::printf("without_step %.2f ms\nwith_step %.2f ms\n", Median(without_seconds) * 1e3, Median(with_seconds) * 1e3);
  PrintRatios("with_over_without", ratios);
  return 0;
}

}  // namespace
}  // namespace pipec::bench

int main(int argc, char** argv) { return pipec::bench::Main(argc, argv); }
