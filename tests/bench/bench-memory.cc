// How small an arena a set of buffers needs: bench-memory FILE.csv [--solution=OUT]; without a file, how near the
// arenas of plans come to the largest sum of bytes that are live at once, which is counted from the plan alone,
// instruction by instruction (tests/support/live_sum.h): gpt-6, resnet18-64 and unet-64, every synchronous
// schedule, 1, 2 and 4 ranks, M = 8.
//
// The file: a line `id,lower,upper,size`, then a buffer a line, live on [lower, upper). A number in front of the
// ending of its name (A.1048576.csv) is the capacity that the layout has to meet. OUT gets lines `id,offset`. Sizes
// and offsets are in units of the file: one of them becomes kBufferAlignment bytes for the solver, which places by
// that many.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "compiler/memory/layout.h"
#include "compiler/schedule/schedule.h"
#include "runtime/plan/load.h"
#include "tests/bench/run_program.h"
#include "tests/support/live_sum.h"

namespace pipec::bench {
namespace {

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::exit(1);
}

struct Problem {
  std::vector<std::string> ids;
  std::vector<MemoryItem> items;
};

Problem ReadProblem(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line) || absl::StripAsciiWhitespace(line) != "id,lower,upper,size")
    Fail(path + ": the first line is not id,lower,upper,size");
  Problem problem;
  while (std::getline(file, line)) {
    const std::vector<std::string> cells = absl::StrSplit(absl::StripAsciiWhitespace(line), ',');
    MemoryItem item;
    if (cells.size() != 4 || !absl::SimpleAtoi(cells[1], &item.lower) ||
        !absl::SimpleAtoi(cells[2], &item.upper) || !absl::SimpleAtoi(cells[3], &item.size) ||
        item.size < 0) {
      Fail(path + ": line '" + line + "' is not an id and three numbers");
    }
    item.size *= kBufferAlignment;
    problem.ids.push_back(cells[0]);
    problem.items.push_back(item);
  }
  return problem;
}

// Arena over live sum, by rank of a plan.
std::vector<double> RatiosOf(const std::string& directory) {
  const absl::StatusOr<Manifest> manifest = LoadManifest(directory);
  if (!manifest.ok()) Fail(manifest.status().ToString());
  std::vector<double> ratios;
  for (int rank = 0; rank < manifest->ranks; ++rank) {
    const absl::StatusOr<plan::RankPlan> plan = LoadRankPlan(directory, *manifest, rank);
    if (!plan.ok()) Fail(plan.status().ToString());
    ratios.push_back(static_cast<double>(plan->arena_bytes()) / static_cast<double>(LiveSum(*plan)));
  }
  return ratios;
}

void RunPlans() {
  const ScratchFolder folder;
  std::map<std::string, double> worst;  // by schedule
  std::printf("%-12s %-14s %5s %12s  %s\n", "model", "schedule", "ranks", "arena, MB",
              "arena / live sum, by rank");
  for (const auto& [kind, preset] :
       {std::pair("gpt", "gpt-6"), std::pair("resnet", "resnet18-64"), std::pair("unet", "unet-64")}) {
    const std::string model = folder / absl::StrCat(preset, ".onnx"), directory = folder / "model.plan";
    MustRun({"make-model", kind, absl::StrCat("--preset=", preset), "-o", model});
    for (const ScheduleInfo& info : AllSchedules()) {
      if (info.late_updates) continue;  // steps without an end
      const std::string schedule(info.name);
      for (const int ranks : {1, 2, 4}) {
        const nlohmann::json report = nlohmann::json::parse(
            MustRun({"pipec", model, "-o", directory, absl::StrCat("--stages=", ranks), "--microbatches=8",
                     absl::StrCat("--schedule=", schedule), "--json"})
                .out);
        std::printf("%-12s %-14s %5d %12.3f ", preset, schedule.c_str(), ranks,
                    report["peak_bytes"].get<double>() * 1e-6);
        for (const double ratio : RatiosOf(directory)) {
          std::printf(" %.4f", ratio);
          worst[schedule] = std::max(worst[schedule], ratio);
        }
        std::printf("\n");
        std::fflush(stdout);
      }
    }
  }
  for (const auto& [schedule, ratio] : worst)
    std::printf("plans_worst_arena_over_live_sum_%s %.4f ratio\n", schedule.c_str(), ratio);
}

void RunProblem(const std::string& path, const std::string& solution) {
  const Problem problem = ReadProblem(path);
  const auto begin = std::chrono::steady_clock::now();
  const MemoryLayout layout = SolveLayout(problem.items);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  if (const absl::Status checked = CheckLayout(problem.items, layout); !checked.ok())
    Fail(checked.ToString());
  if (!solution.empty()) {
    std::ofstream out(solution);
    out << "id,offset\n";
    for (size_t i = 0; i < problem.ids.size(); ++i)
      out << problem.ids[i] << ',' << layout.offsets[i] / kBufferAlignment << '\n';
    if (!out.flush()) Fail("cannot write " + solution);
  }
  const std::vector<std::string> parts = absl::StrSplit(path, '.');
  int64_t capacity = 0;
  if (parts.size() > 2 && absl::SimpleAtoi(parts[parts.size() - 2], &capacity)) {
    std::printf("memory_capacity %lld units\n", static_cast<long long>(capacity));
    std::printf("memory_peak_over_capacity %.6f ratio\n",
                static_cast<double>(layout.peak) / kBufferAlignment / capacity);
  }
  std::printf("memory_bound %lld units\n",
              static_cast<long long>(MemoryLowerBound(problem.items) / kBufferAlignment));
  std::printf("memory_peak %lld units\n", static_cast<long long>(layout.peak / kBufferAlignment));
  std::printf("memory_seconds %.3f s\n", seconds.count());
}

}  // namespace
}  // namespace pipec::bench

int main(int argc, char** argv) {
  std::string path, solution;
  for (int k = 1; k < argc; ++k) {
    absl::string_view argument = argv[k];
    if (absl::ConsumePrefix(&argument, "--solution=")) {
      solution = std::string(argument);
    } else {
      path = std::string(argument);
    }
  }
  if (path.empty() && solution.empty()) {
    pipec::bench::RunPlans();
  } else if (path.empty() || path[0] == '-') {
    std::fprintf(stderr, "usage: bench-memory [FILE.csv [--solution=OUT]]\n");
    return 2;
  } else {
    pipec::bench::RunProblem(path, solution);
  }
}
