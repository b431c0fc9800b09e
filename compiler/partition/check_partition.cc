// Computes everything anew, stage by stage, from the definition: shares nothing with the solvers.
#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "compiler/partition/solve.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

absl::Status CheckOrder(const PartitionProblem& problem, const std::vector<int>& stage_of) {
  const auto check = [&](int before, int after) {
    if (stage_of[before] <= stage_of[after]) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("partition: item ", after, " of stage ", stage_of[after],
                                            " needs item ", before, " of the later stage ",
                                            stage_of[before]));
  };
  for (const PartitionTensor& tensor : problem.tensors) {
    if (!tensor.ordered) continue;
    for (int consumer : tensor.consumers) RETURN_IF_ERROR(check(tensor.producer, consumer));
  }
  for (const auto& [before, after] : problem.order) RETURN_IF_ERROR(check(before, after));
  for (size_t i = 1; i < problem.items.size(); ++i) {
    if (problem.items[i].glued_to_previous && stage_of[i] != stage_of[i - 1]) {
      return absl::InternalError(absl::StrCat("partition: item ", i, " of stage ", stage_of[i],
                                              " is glued to the one before, of stage ", stage_of[i - 1]));
    }
  }
  return absl::OkStatus();
}

// Compute of a stage, and each tensor that goes out of it or comes into it, once.
double Load(const PartitionProblem& problem, const std::vector<int>& stage_of, int stage, double speed) {
  auto inside = [&](int item) { return stage_of[item] == stage; };
  double load = 0;
  for (size_t i = 0; i < problem.items.size(); ++i) {
    if (inside(i)) load += problem.items[i].seconds / speed;
  }
  for (const PartitionTensor& tensor : problem.tensors) {
    const auto& users = tensor.consumers;
    const bool used_inside = std::any_of(users.begin(), users.end(), inside);
    const bool used_outside = !std::all_of(users.begin(), users.end(), inside);
    if (inside(tensor.producer) ? used_outside : used_inside) load += tensor.seconds;
  }
  return load;
}

// What a device keeps of its stages; and, by kind, what it can make again.
struct Kept {
  int64_t bytes = 0;  // with everything that can be made again
  PartitionRemake remake[kRemakeKinds];
};

void AddBytes(const PartitionProblem& problem, const std::vector<int>& stage_of, int stage, Kept& kept) {
  const int in_flight = problem.in_flight.empty() ? 1 : problem.in_flight[stage];
  const int versions = problem.versions.empty() ? 1 : problem.versions[stage];
  auto inside = [&](int item) { return stage_of[item] == stage; };
  for (size_t i = 0; i < problem.items.size(); ++i) {
    if (!inside(i)) continue;
    const PartitionItem& item = problem.items[i];
    kept.bytes += item.parameter_bytes + versions * item.weight_bytes + in_flight * item.activation_bytes;
    for (int k = 0; k < kRemakeKinds; ++k) {
      kept.bytes += in_flight * item.remake[k].bytes;
      kept.remake[k].bytes += in_flight * item.remake[k].bytes;
      kept.remake[k].seconds += item.remake[k].seconds;
    }
  }
  for (const PartitionShared& shared : problem.shared) {
    if (std::any_of(shared.items.begin(), shared.items.end(), inside))
      kept.bytes += shared.bytes + versions * shared.weight_bytes;
  }
}

// Seconds of what is made again until the rest is within the limit; takes that from the bytes.
double MakeAgain(Kept& kept, int64_t limit) {
  double seconds = 0;
  for (const PartitionRemake& kind : kept.remake) {
    const int64_t again = std::min(kind.bytes, std::max<int64_t>(0, kept.bytes - limit));
    if (again > 0) seconds += kind.seconds * static_cast<double>(again) / static_cast<double>(kind.bytes);
    kept.bytes -= again;
  }
  return seconds;
}

}  // namespace

absl::Status CheckPartition(const PartitionProblem& problem, const PartitionSolution& solution) {
  const int n = static_cast<int>(problem.items.size()), S = problem.stages;
  if (static_cast<int>(solution.stage_of.size()) != n || S < 1) {
    return absl::InternalError(
        absl::StrCat("partition of ", n, " items names stages of ", solution.stage_of.size()));
  }
  std::vector<int> held(S, 0);
  for (int i = 0; i < n; ++i) {
    const int stage = solution.stage_of[i];
    if (stage < 0 || stage >= S)
      return absl::InternalError(absl::StrCat("partition: item ", i, " in stage ", stage, " of ", S));
    ++held[stage];
  }
  RETURN_IF_ERROR(CheckOrder(problem, solution.stage_of));
  std::map<int, double> seconds_of_rank;
  std::map<int, Kept> kept_of_rank;
  for (int s = 0; s < S; ++s) {
    if (held[s] == 0) return absl::InternalError(absl::StrCat("partition: stage ", s, " is empty"));
    const int rank = problem.rank_of_stage.empty() ? s : problem.rank_of_stage[s];
    const double speed = problem.speed.empty() ? 1 : problem.speed[rank];
    seconds_of_rank[rank] += Load(problem, solution.stage_of, s, speed);
    AddBytes(problem, solution.stage_of, s, kept_of_rank[rank]);
  }
  for (auto& [rank, kept] : kept_of_rank) {
    int64_t limit = problem.memory_limit;
    if (!problem.memory_limits.empty()) limit = std::min(limit, problem.memory_limits[rank]);
    seconds_of_rank[rank] += MakeAgain(kept, limit) / (problem.speed.empty() ? 1 : problem.speed[rank]);
    if (kept.bytes > limit) {
      return absl::InternalError(
          absl::StrCat("partition: stages of device ", rank, " take ", kept.bytes, " bytes, limit ", limit));
    }
  }
  double slowest = 0;
  for (const auto& [rank, seconds] : seconds_of_rank) slowest = std::max(slowest, seconds);
  if (!(std::abs(slowest - solution.bottleneck) <= 1e-9 * slowest)) {
    return absl::InternalError(absl::StrCat("partition: bottleneck is given as ", solution.bottleneck,
                                            " seconds, the slowest device takes ", slowest));
  }
  if (!(solution.lower_bound <= slowest * (1 + 1e-9))) {
    return absl::InternalError(absl::StrCat("partition: lower bound ", solution.lower_bound,
                                            " seconds is above the slowest device's ", slowest));
  }
  return absl::OkStatus();
}

}  // namespace pipec
