// Computes everything anew, stage by stage, from the definition: shares nothing with the solver.
#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "compiler/partition/solve.h"

namespace pipec {
namespace {

// Compute of items [begin, end), and each tensor that goes out of them or comes into them, once.
double Load(const PartitionProblem& problem, int begin, int end) {
  auto inside = [&](int item) { return item >= begin && item < end; };
  double load = 0;
  for (int i = begin; i < end; ++i) load += problem.items[i].seconds;
  for (const PartitionTensor& tensor : problem.tensors) {
    const auto& users = tensor.consumers;
    const bool used_inside = std::any_of(users.begin(), users.end(), inside);
    const bool used_outside = !std::all_of(users.begin(), users.end(), inside);
    if (inside(tensor.producer) ? used_outside : used_inside) load += tensor.seconds;
  }
  return load;
}

int64_t Bytes(const PartitionProblem& problem, int begin, int end, int in_flight) {
  int64_t bytes = 0;
  for (int i = begin; i < end; ++i) {
    bytes += problem.items[i].parameter_bytes + in_flight * problem.items[i].activation_bytes;
  }
  for (const PartitionShared& shared : problem.shared) {
    const auto& items = shared.items;
    if (std::any_of(items.begin(), items.end(), [&](int i) { return i >= begin && i < end; }))
      bytes += shared.bytes;
  }
  return bytes;
}

}  // namespace

absl::Status CheckPartition(const PartitionProblem& problem, const PartitionSolution& solution) {
  const int n = problem.items.size(), S = problem.stages;
  const std::vector<int>& first = solution.first_item;
  if (static_cast<int>(first.size()) != S || S < 1 || first[0] != 0) {
    return absl::InternalError(absl::StrCat("partition of ", n, " items into ", S, " stages has ",
                                            first.size(), " first items, from ",
                                            first.empty() ? -1 : first[0]));
  }
  double slowest = 0;
  std::map<int, int64_t> bytes_of_rank;
  for (int s = 0; s < S; ++s) {
    const int end = s + 1 < S ? first[s + 1] : n;
    if (first[s] < 0 || first[s] >= end || end > n) {
      return absl::InternalError(absl::StrCat("partition: stage ", s, " is empty or out of order: items ",
                                              first[s], " to ", end, " of ", n));
    }
    if (s > 0 && problem.items[first[s]].glued_to_previous) {
      return absl::InternalError(
          absl::StrCat("partition: cut before item ", first[s], ", which is glued to ", first[s] - 1));
    }
    slowest = std::max(slowest, Load(problem, first[s], end));
    const int rank = problem.rank_of_stage.empty() ? s : problem.rank_of_stage[s];
    const int in_flight = problem.in_flight.empty() ? 1 : problem.in_flight[s];
    const int64_t bytes = bytes_of_rank[rank] += Bytes(problem, first[s], end, in_flight);
    if (bytes > problem.memory_limit) {
      return absl::InternalError(absl::StrCat("partition: stages of device ", rank, " take ", bytes,
                                              " bytes, limit ", problem.memory_limit));
    }
  }
  if (std::abs(slowest - solution.bottleneck) > 1e-9 * slowest) {
    return absl::InternalError(absl::StrCat("partition: bottleneck is given as ", solution.bottleneck,
                                            " seconds, the slowest stage takes ", slowest));
  }
  if (solution.lower_bound > slowest * (1 + 1e-9)) {
    return absl::InternalError(absl::StrCat("partition: lower bound ", solution.lower_bound,
                                            " seconds is above the slowest stage's ", slowest));
  }
  return absl::OkStatus();
}

}  // namespace pipec
