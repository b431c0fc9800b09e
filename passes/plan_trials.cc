#include "passes/plan_trials.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "runtime/base/least_memory.h"

namespace pipec {
namespace {

// Sums of the same times in another order are the same.
double Rounded(const PlanCandidate& candidate) {
  return std::round(candidate.step_seconds * 1e9) / static_cast<double>(candidate.batch);
}

bool IsBetter(const PlanCandidate& a, const PlanCandidate& b) {
  if (a.refusal.empty() != b.refusal.empty()) return a.refusal.empty();
  if (!a.refusal.empty()) return false;
  return std::tuple(Rounded(a), a.shape.ranks, a.peak_bytes) <
         std::tuple(Rounded(b), b.shape.ranks, b.peak_bytes);
}

}  // namespace

std::unique_ptr<Module> PlanTrials::Try(PlanCandidate candidate) {
  absl::StatusOr<std::unique_ptr<Module>> compiled = maker_.Compile(candidate, 0);
  if (!compiled.ok()) {
    Refuse(std::move(candidate), compiled.status());
    return nullptr;
  }
  const Module& module = **compiled;
  candidate.batch = module.microbatch_size * candidate.shape.microbatches * module.replicas;
  candidate.step_seconds = module.simulation.step_seconds;
  candidate.order_seconds = module.simulation.makespan;
  candidate.bubble_ratio = module.simulation.bubble_ratio;
  for (const RankMemory& memory : module.memory)
    candidate.peak_bytes = std::max(candidate.peak_bytes, memory.arena_bytes);
  candidates_.push_back(std::move(candidate));
  return *std::move(compiled);
}

void PlanTrials::Refuse(PlanCandidate candidate, const absl::Status& why) {
  if (first_refusal_.ok()) first_refusal_ = why;
  if (absl::IsOutOfRange(why)) too_many_stages_ = std::min(too_many_stages_, candidate.shape.stages());
  if (const std::optional<int64_t> least = LeastMemory(why)) lacking_.push_back({candidate, *least});
  candidate.refusal = std::string(why.message());
  candidates_.push_back(std::move(candidate));
}

bool PlanTrials::MayBeChosen(double sample_seconds) const {
  const std::vector<PlanCandidate> sorted = Sorted();
  return sorted.size() < 2 || !sorted[1].refusal.empty() || sample_seconds < sorted[1].SampleSeconds();
}

std::vector<PlanCandidate> PlanTrials::Sorted() const {
  std::vector<PlanCandidate> sorted = candidates_;
  std::stable_sort(sorted.begin(), sorted.end(), IsBetter);
  std::set<std::tuple<int, int, int>> found;
  std::erase_if(sorted, [&](const PlanCandidate& candidate) {
    const ScheduleShape& shape = candidate.shape;
    return candidate.found &&
           !found.insert({shape.ranks, shape.microbatches, shape.virtual_stages}).second;
  });
  return sorted;
}

}  // namespace pipec
