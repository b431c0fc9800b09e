#include "tests/bench/comparison_flags.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tests/bench/run_program.h"

namespace pipec::bench {
namespace {

// RunProgram looks for programs beside this one, not in PATH.
std::string Absolute(const std::string& program) {
  if (absl::StrContains(program, "/")) return std::filesystem::absolute(program).string();
  std::string path = MustRun({"/bin/sh", "-c", "command -v -- '" + program + "' || echo /nowhere"}).out;
  return std::string(absl::StripSuffix(path, "\n"));
}

void Require(const std::string& bench, const std::string& python, const std::string& modules) {
  if (RunProgram({python, "-c", "import " + modules}).exit_code == 0) return;
  std::fprintf(stderr,
               "%s: '%s' has not all of %s to compare with; make a Python that has them,\n"
               "  python3 -m venv DIR && DIR/bin/pip install %s\n"
               "and say --python=DIR/bin/python\n",
               bench.c_str(), python.c_str(), modules.c_str(),
               absl::StrReplaceAll(modules, {{",", ""}}).c_str());
  std::exit(1);
}

}  // namespace

ComparisonFlags ParseComparisonFlags(int argc, char** argv, const std::string& models,
                                     const std::string& modules) {
  const std::string bench = std::filesystem::path(argv[0]).filename();
  ComparisonFlags flags;
  const char* named = std::getenv("PIPEC_TORCH_PYTHON");
  flags.python = named != nullptr ? named : "python3";
  flags.models = absl::StrSplit(models, ',');
  for (int i = 1; i < argc; ++i) {
    absl::string_view word = argv[i];
    if (absl::ConsumePrefix(&word, "--python=")) {
      flags.python = std::string(word);
    } else if (absl::ConsumePrefix(&word, "--models=")) {
      flags.models = absl::StrSplit(word, ',');
    } else if (!absl::ConsumePrefix(&word, "--pairs=") || (flags.pairs = std::atoi(word.data())) < 1) {
      std::fprintf(stderr, "%s: '%s'; usage: %s [--python=PATH] [--pairs=N] [--models=NAME,...]\n",
                   bench.c_str(), argv[i], bench.c_str());
      std::exit(2);
    }
  }
  flags.python = Absolute(flags.python);
  Require(bench, flags.python, modules);
  return flags;
}

}  // namespace pipec::bench
