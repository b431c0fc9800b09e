#include "compiler/partition/order_search.h"

#include <algorithm>
#include <limits>

#include "compiler/partition/device_order.h"
#include "compiler/partition/fixed_order.h"
#include "compiler/partition/solve.h"

namespace pipec {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Of the genes of a child those of the better parent, and those that are drawn anew.
constexpr double kFromBetter = 0.7, kMutated = 0.02;

double DrawShare(std::mt19937_64& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

// How much worse a cut may be to be taken while blocks are moved, by turns.
constexpr double kHeats[] = {0.1, 0.03, 0.3, 0.01, 0.05};
constexpr size_t kPopulation = 40;
// After so many rounds that found nothing better, breeding begins anew.
constexpr int kIdleRounds = 4;
// A round: moves tried, by block, and orders bred.
constexpr int64_t kTries = 200;
constexpr int kOrders = 400;

}  // namespace

OrderSearch::OrderSearch(const PartitionProblem& problem, const Blocks& blocks, double bound)
    : problem_(problem),
      blocks_(blocks),
      rules_(RulesOf(problem)),
      least_load_(LeastLoad(blocks, rules_)),
      bound_(bound),
      one_stage_a_device_(OneStageADevice(problem)),
      orders_(blocks),
      moves_(problem, blocks),
      best_time_(kInfinity) {}

bool OrderSearch::at_bound() const { return best_time_ <= bound_ * (1 + 1e-9); }

void OrderSearch::Offer(std::vector<int> stage_of) {
  const double time = StepTime(problem_, ByItem(problem_, stage_of));
  if (time >= best_time_) return;
  best_time_ = time;
  best_ = std::move(stage_of);
}

std::vector<double> OrderSearch::KeysOf(const std::vector<int>& stage_of) {
  std::vector<double> keys(blocks_.size());
  for (int block = 0; block < blocks_.size(); ++block) keys[block] = stage_of[block] + DrawShare(random_);
  const std::vector<int> order = orders_.ByKey(keys);
  for (size_t k = 0; k < order.size(); ++k) keys[order[k]] = static_cast<double>(k) / order.size();
  return keys;
}

std::optional<double> OrderSearch::Try(const std::vector<int>& order, double worst) {
  const Blocks ordered = Reorder(blocks_, order);
  FixedOrderSolver solver(ordered, rules_);
  const double known = one_stage_a_device_ ? worst : kInfinity;  // of stages, not of devices
  const ThresholdCut cut = problem_.microbatches > 0
                               ? LeastStepTime(solver, least_load_, problem_.microbatches, known)
                               : LeastBottleneck(solver, least_load_, known);
  work_ += solver.steps() + 50 * blocks_.size();
  if (!cut.stage_of) return std::nullopt;
  if (!one_stage_a_device_) return ShiftBoundaries(order, ordered, solver.cut(), worst);
  return OfferInOrder(order, *cut.stage_of);
}

double OrderSearch::OfferInOrder(const std::vector<int>& order, const std::vector<int>& stage_of_place) {
  std::vector<int> stage_of(blocks_.size());
  for (int k = 0; k < blocks_.size(); ++k) stage_of[order[k]] = stage_of_place[k];
  const double time = StepTime(problem_, ByItem(problem_, stage_of));
  Offer(std::move(stage_of));
  return time;
}

std::optional<double> OrderSearch::ShiftBoundaries(const std::vector<int>& order, Blocks ordered, std::vector<int> cut,
                                                   double worst) {
  DeviceOrder in_order(problem_, std::move(ordered));
  const std::optional<std::vector<int>> shifted = in_order.Improve(std::move(cut), worst);
  work_ += in_order.steps();
  if (!shifted) return std::nullopt;
  return OfferInOrder(order, *shifted);
}

void OrderSearch::TryOrders(int count) {
  for (int k = 0; k < count && !done(); ++k)
    Try(k % 2 ? orders_.Random(random_) : orders_.DepthFirst(random_), best_time_);
}

void OrderSearch::MoveBlocks(int rounds, int64_t tries) {
  std::vector<int> current = *best_;
  for (int round = 0; round < rounds && !done(); ++round, ++rounds_) {
    const double heat = kHeats[rounds_ % std::size(kHeats)];
    current = moves_.Improve(round % 2 ? current : *best_, tries, heat, random_);
    work_ += 8 * tries;
    Offer(current);
    if (one_stage_a_device_) {
      TryAndKeep(KeysOf(current));
    } else {
      const std::vector<int> order = orders_.ByKey(KeysOf(current));
      std::vector<int> cut(1, 0);
      for (int k = 1; k < blocks_.size(); ++k) {
        if (current[order[k]] != current[order[k - 1]]) cut.push_back(k);
      }
      ShiftBoundaries(order, Reorder(blocks_, order), std::move(cut), best_time_);
    }
  }
}

void OrderSearch::TryAndKeep(std::vector<double> keys) {
  const bool full = kept_.size() == kPopulation;
  const std::optional<double> time = Try(orders_.ByKey(keys), full ? kept_.back().time : kInfinity);
  if (!time) return;
  if (full) kept_.pop_back();
  Individual child{std::move(keys), *time};
  kept_.insert(std::upper_bound(kept_.begin(), kept_.end(), child,
                                [](const Individual& a, const Individual& b) { return a.time < b.time; }),
               std::move(child));
}

void OrderSearch::Breed(int count) {
  for (int k = 0; k < count && !done(); ++k) {
    if (kept_.size() < kPopulation) {
      std::vector<double> keys(blocks_.size());
      const std::vector<int> order = orders_.DepthFirst(random_);
      for (size_t place = 0; place < order.size(); ++place)
        keys[order[place]] = static_cast<double>(place) / order.size();
      TryAndKeep(std::move(keys));
      continue;
    }
    const std::vector<double>& better = kept_[random_() % (kPopulation / 4)].keys;
    const std::vector<double>& other = kept_[random_() % kPopulation].keys;
    std::vector<double> keys(blocks_.size());
    for (int block = 0; block < blocks_.size(); ++block) {
      keys[block] = (DrawShare(random_) < kFromBetter ? better : other)[block];
      if (DrawShare(random_) < kMutated) keys[block] = DrawShare(random_);
    }
    TryAndKeep(std::move(keys));
  }
}

void OrderSearch::Search() {
  for (int idle = 0; !done(); ++idle) {
    const double before = best_time_;
    MoveBlocks(10, kTries * blocks_.size());
    Breed(kOrders);
    if (best_time_ < before) idle = 0;
    if (idle < kIdleRounds) continue;
    kept_.clear();  // all are alike by now
    idle = 0;
  }
}

void OrderSearch::Smooth() {
  if (!one_stage_a_device_ || problem_.microbatches > 0) return;
  const std::vector<int> order = orders_.ByKey(KeysOf(*best_));
  const Blocks ordered = Reorder(blocks_, order);
  FixedOrderSolver solver(ordered, rules_);
  if (solver.Probe(best_time_) != ThresholdSolver::Answer::kYes) return;
  double squares = 0;
  const std::vector<int> smooth = solver.Best(best_time_, Least::kSumOfSquares, squares);
  for (int k = 0; k < blocks_.size(); ++k) (*best_)[order[k]] = smooth[k];
  best_time_ = StepTime(problem_, ByItem(problem_, *best_));
}

}  // namespace pipec
