// The best schedule that the search finds for given costs, beside the bound and what others reported.
//
//   bench-schedule FILE.json [--instance=NAME] [--solution=OUT.csv]
//
// FILE.json: an object of instances: {"stages", "microbatches", "F", "B", "W" (by stage; B is the input gradient),
// "comm" (a hop), "mem_F", "mem_B", "mem_W" (what each adds), "max_mem", "reference": {NAME: value}}. The values
// printed are recomputed by the simulator from the schedule, which the checker has passed. --solution: the schedule
// as PyTorch's compute-only CSV.
#include <chrono>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/strip.h"
#include "compiler/schedule/search/search.h"

namespace pipec::bench {
namespace {

ScheduleProblem Read(const nlohmann::json& instance) {
  ScheduleProblem problem;
  const int P = instance["stages"];
  problem.shape = {P, 1, instance["microbatches"]};
  problem.rank_of_stage = PlaceStages(problem.shape, Placement::kLoop);
  for (int s = 0; s < P; ++s) {
    problem.times.push_back({instance["F"][s], instance["B"][s], instance["W"][s]});
    // What B and W free was kept until then.
    problem.memory.push_back({-instance["mem_B"][s].get<int64_t>(), -instance["mem_W"][s].get<int64_t>()});
    problem.limit.push_back(instance["max_mem"][s]);
    if (s == 0) continue;
    problem.links.push_back({s - 1, s, instance["comm"]});
    problem.links.push_back({s, s - 1, instance["comm"]});
  }
  return problem;
}

std::vector<Schedule> Named(const ScheduleProblem& problem) {
  std::vector<Schedule> schedules;
  for (const ScheduleInfo& info : AllSchedules()) {
    if (info.forward_only || info.late_updates) continue;
    absl::StatusOr<Schedule> schedule = info.generate(problem.shape);
    if (schedule.ok() && schedule->rank_of_stage == problem.rank_of_stage)
      schedules.push_back(*std::move(schedule));
  }
  return schedules;
}

absl::Status Run(const std::string& name, const nlohmann::json& instance, const std::string& solution) {
  using Clock = std::chrono::steady_clock;
  const ScheduleProblem problem = Read(instance);
  const Clock::time_point begin = Clock::now();
  absl::StatusOr<FoundSchedule> found = FindBestSchedule(problem, Named(problem));
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  if (!found.ok()) return found.status();
  if (absl::Status status = CheckSchedule(found->schedule, {}); !status.ok()) return status;
  absl::StatusOr<Simulation> simulation = Simulate(found->schedule, problem.links, problem.times);
  if (!simulation.ok()) return simulation.status();
  if (!solution.empty()) std::ofstream(solution) << ToCsv(found->schedule);
  for (const auto& [what, value] : instance["reference"].items())
    std::printf("%s: %s %g\n", name.c_str(), what.c_str(), value.get<double>());
  std::printf("%s_makespan %.10g ticks\n", name.c_str(), simulation->makespan);
  std::printf("%s_bound %.10g ticks\n", name.c_str(), found->bound);
  std::printf("%s_seconds %.3f s\n", name.c_str(), seconds);
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  std::string file, only, solution;
  for (int i = 1; i < argc; ++i) {
    absl::string_view word = argv[i];
    if (absl::ConsumePrefix(&word, "--instance=")) {
      only = std::string(word);
    } else if (absl::ConsumePrefix(&word, "--solution=")) {
      solution = std::string(word);
    } else if (file.empty() && word.substr(0, 2) != "--") {
      file = std::string(word);
    } else {
      file.clear();
      break;
    }
  }
  const nlohmann::json instances = nlohmann::json::parse(std::ifstream(file), nullptr, false);
  if (!instances.is_object() || (!solution.empty() && only.empty() && instances.size() != 1) ||
      (!only.empty() && !instances.contains(only))) {
    std::fprintf(stderr,
                 "bench-schedule: usage: bench-schedule FILE.json [--instance=NAME] [--solution=OUT.csv], a "
                 "solution of one "
                 "instance\n");
    return 2;
  }
  for (const auto& [name, instance] : instances.items()) {
    if (!only.empty() && name != only) continue;
    if (absl::Status status = Run(name, instance, solution); !status.ok()) {
      std::fprintf(stderr, "bench-schedule: %s: %s\n", name.c_str(), std::string(status.message()).c_str());
      return 1;
    }
  }
  return 0;
}

}  // namespace
}  // namespace pipec::bench

int main(int argc, char** argv) { return pipec::bench::Main(argc, argv); }
