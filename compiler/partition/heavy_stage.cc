#include "compiler/partition/heavy_stage.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

namespace pipec {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr size_t kBlocks = 8;
// Arcs looked at for a block.
constexpr int64_t kSteps = 100'000;

// A flow enters a tensor by any of its blocks, takes up what the tensor costs, and leaves it by any; from a block
// it may leave for good, which takes up the block's seconds.
class StageFlow {
 public:
  StageFlow(const Blocks& blocks, double speed)
      : n_(blocks.size()),
        room_(n_),
        arcs_of_(n_ + 2 * blocks.tensors.size()),
        seen_(arcs_of_.size(), 0),
        by_(seen_) {
    for (int block = 0; block < n_; ++block) room_[block] = blocks.blocks[block].seconds / speed;
    for (size_t t = 0; t < blocks.tensors.size(); ++t) {
      const BlockTensor& tensor = blocks.tensors[t];
      const int entry = n_ + 2 * static_cast<int>(t), exit = entry + 1;
      AddArc(entry, exit, tensor.seconds);
      const auto join = [&](int block) {
        AddArc(block, entry, kInfinity);
        AddArc(exit, block, kInfinity);
      };
      join(tensor.producer);
      for (int consumer : tensor.consumers) join(consumer);
    }
  }

  // The largest flow from the block; less if the steps do not suffice.
  double From(int block) {
    double flow = std::exchange(room_[block], 0);
    while (const double more = Augment(block)) flow += more;
    return flow;
  }

 private:
  struct Arc {
    int from = 0, to = 0;
    double room = 0;
  };

  // Arcs k and k ^ 1 are each other's way back.
  void AddArc(int from, int to, double room) {
    arcs_of_[from].push_back(static_cast<int>(arcs_.size()));
    arcs_.push_back({from, to, room});
    arcs_of_[to].push_back(static_cast<int>(arcs_.size()));
    arcs_.push_back({to, from, 0});
  }

  // Along a shortest way to a block with room; 0 if there is none.
  double Augment(int from) {
    ++rounds_;
    std::vector<int> queue = {from};
    seen_[from] = rounds_;
    for (size_t next = 0; next < queue.size(); ++next) {
      for (const int k : arcs_of_[queue[next]]) {
        if (++steps_ > kSteps) return 0;
        const int to = arcs_[k].to;
        if (arcs_[k].room <= 0 || seen_[to] == rounds_) continue;
        seen_[to] = rounds_;
        by_[to] = k;
        if (to < n_ && room_[to] > 0) return Push(from, to);
        queue.push_back(to);
      }
    }
    return 0;
  }

  double Push(int from, int to) {
    double flow = room_[to];
    for (int at = to; at != from; at = arcs_[by_[at]].from) flow = std::min(flow, arcs_[by_[at]].room);
    room_[to] -= flow;
    for (int at = to; at != from; at = arcs_[by_[at]].from) {
      arcs_[by_[at]].room -= flow;
      arcs_[by_[at] ^ 1].room += flow;
    }
    return flow;
  }

  const int n_;
  std::vector<double> room_;  // by block: what is left of its seconds
  std::vector<Arc> arcs_;
  // By block, then by tensor its entry and its exit.
  std::vector<std::vector<int>> arcs_of_;
  std::vector<int> seen_, by_;  // the round that reached it last, and the arc by which
  int rounds_ = 0;
  int64_t steps_ = 0;
};

}  // namespace

double HeavyStageBound(const Blocks& blocks, double speed, double bound) {
  std::vector<double> alone(blocks.size());  // with all its messages: the most that a block can show
  for (int block = 0; block < blocks.size(); ++block) alone[block] = blocks.blocks[block].seconds / speed;
  for (const BlockTensor& tensor : blocks.tensors) {
    alone[tensor.producer] += tensor.seconds;
    for (int consumer : tensor.consumers) alone[consumer] += tensor.seconds;
  }
  std::vector<int> heaviest;
  for (int block = 0; block < blocks.size(); ++block) {
    if (alone[block] > bound) heaviest.push_back(block);
  }
  const size_t count = std::min(heaviest.size(), kBlocks);
  std::partial_sort(heaviest.begin(), heaviest.begin() + count, heaviest.end(), [&](int a, int b) {
    return std::pair(-blocks.blocks[a].seconds, a) < std::pair(-blocks.blocks[b].seconds, b);
  });
  std::optional<StageFlow> network;
  for (size_t k = 0; k < count; ++k) {
    if (alone[heaviest[k]] <= bound) continue;
    if (!network) network.emplace(blocks, speed);
    bound = std::max(bound, StageFlow(*network).From(heaviest[k]));
  }
  return bound;
}

}  // namespace pipec
