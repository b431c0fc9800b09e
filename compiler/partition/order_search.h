// The search where not all orders can be looked at: the exact solver on many orders, which a genetic algorithm
// with biased random keys breeds (Archer et al., Practical performance guarantees for pipelined DNN inference,
// ICML 2024), and moves of single blocks.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "compiler/partition/blocks.h"
#include "compiler/partition/orders.h"
#include "compiler/partition/stage_moves.h"
#include "compiler/partition/stage_rules.h"

namespace pipec {

class OrderSearch {
 public:
  // All must outlive this. `bound`: nothing is better. Draws the same numbers each time.
  OrderSearch(const PartitionProblem& problem, const Blocks& blocks, double bound);

  // All that follows comes to an end when so much is done, from the beginning on: segments looked at, or what takes
  // as long.
  void LimitWork(int64_t work) { most_work_ = work; }
  // A cut to begin with, which is valid and fits; by block. Kept if it is the best so far.
  void Offer(std::vector<int> stage_of);
  // The exact solver on `count` orders drawn at random, every other one depth first.
  void TryOrders(int count);
  // Single blocks are moved from the best cut so far, `rounds` times so many tries; after each, the exact solver
  // on an order of the stages found. Needs a cut.
  void MoveBlocks(int rounds, int64_t tries);
  // The exact solver on `count` orders bred from those that were best before.
  void Breed(int count);
  // MoveBlocks and Breed by turns.
  void Search();
  // Among the cuts of the best one's order that are as good, the one with the least sum of squares.
  void Smooth();

  bool at_bound() const;  // the best is
  const std::optional<std::vector<int>>& best() const { return best_; }
  double best_time() const { return best_time_; }

 private:
  struct Individual {
    std::vector<double> keys;  // by block; the order is that of Orders::ByKey
    double time = 0;
  };

  bool done() const { return work_ >= most_work_ || at_bound(); }
  // The least StepTime on one order, if that is below `worst`.
  std::optional<double> Try(const std::vector<int>& order, double worst);
  // `stage_of_place`: by place in the order. Returns its StepTime.
  double OfferInOrder(const std::vector<int>& order, const std::vector<int>& stage_of_place);
  // Where devices hold several stages: the cut of the first blocks of stages, and those near it (DeviceOrder).
  std::optional<double> ShiftBoundaries(const std::vector<int>& order, Blocks ordered, std::vector<int> cut,
                                        double worst);
  // Tries, and keeps the order for Breed if it is among the best.
  void TryAndKeep(std::vector<double> keys);
  // Draws a random valid order in which stages follow each other.
  std::vector<double> KeysOf(const std::vector<int>& stage_of);

  const PartitionProblem& problem_;
  const Blocks& blocks_;
  const StageRules rules_;
  const double least_load_, bound_;
  const bool one_stage_a_device_;
  const Orders orders_;
  StageMoves moves_;
  std::mt19937_64 random_{20240721};
  std::vector<Individual> kept_;  // the best first
  std::optional<std::vector<int>> best_;
  double best_time_ = 0;
  int64_t work_ = 0, most_work_ = 0;
  int rounds_ = 0;  // of moving blocks
};

}  // namespace pipec
