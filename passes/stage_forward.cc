#include "passes/stage_forward.h"

#include <algorithm>
#include <utility>

#include "compiler/ops/op_info.h"

namespace pipec {

StageForward::StageForward(std::vector<Node*> forward, std::vector<Node*> backward)
    : forward_(std::move(forward)), backward_(std::move(backward)) {
  for (int k = 0; k < static_cast<int>(forward_.size()); ++k) place_[forward_[k]] = k;
}

int StageForward::PlaceOf(const Node& user) const {
  const bool backward = user.kind == Kind::kI || user.kind == Kind::kW;
  const auto it = place_.find(backward ? user.origin : &user);
  return it == place_.end() ? -1 : it->second;
}

int StageForward::LastPlace(const Value& value, int last) const {
  for (const Use& use : value.uses()) {
    last = std::max(last, PlaceOf(*use.node));
    if (place_.contains(use.node) && AliasOf(*use.node) == Alias::kView)
      last = std::max(last, LastPlace(*use.node->output(0), last));
  }
  return last;
}

SegmentProblem StageForward::Segments(int in_flight) const {
  const int nodes = static_cast<int>(forward_.size());
  SegmentProblem problem{std::vector<int64_t>(nodes, 0), std::vector<int64_t>(std::max(nodes - 1, 0), 0),
                         in_flight};
  std::vector<int64_t> begins(nodes,
                              0);  // of what crosses: bytes that begin behind a place, less those that end
  for (int k = 0; k < nodes; ++k) {
    if (AliasOf(*forward_[k]) == Alias::kView) continue;
    for (const Value* output : forward_[k]->outputs()) {
      if (!output) continue;
      problem.made[k] += output->type.bytes();
      if (const int last = LastPlace(*output, k); last > k) {
        begins[k] += output->type.bytes();
        begins[last] -= output->type.bytes();
      }
    }
  }
  int64_t crossing = 0;
  for (int k = 0; k + 1 < nodes; ++k) problem.crossing[k] = crossing += begins[k];
  return problem;
}

bool StageForward::IsRemade(const Value* value, int begin, int end, const std::vector<char>& kept) const {
  const auto it = value && value->producer() ? place_.find(value->producer()) : place_.end();
  return it != place_.end() && begin <= it->second && it->second < end && !kept[it->second];
}

std::vector<Node*> StageForward::UsersOf(int begin, int end, const std::vector<char>& kept) const {
  std::vector<Node*> users;
  for (Node* node : backward_) {
    const int place = PlaceOf(*node);
    if (place < begin || place >= end) continue;
    const bool reads = std::any_of(node->inputs().begin(), node->inputs().end(),
                                   [&](const Value* input) { return IsRemade(input, begin, end, kept); });
    if (reads || !users.empty()) users.push_back(node);
  }
  return users;
}

std::vector<int> StageForward::ToRunAgain(int begin, int end, const std::vector<char>& kept) const {
  std::vector<int> wanted;
  std::vector<char> seen(forward_.size(), 0);
  const auto want = [&](const Node& user) {
    for (const Value* input : user.inputs()) {
      if (!IsRemade(input, begin, end, kept)) continue;
      const int place = place_.at(input->producer());
      if (!std::exchange(seen[place], 1)) wanted.push_back(place);
    }
  };
  for (const Node* user : UsersOf(begin, end, kept)) want(*user);
  for (size_t k = 0; k < wanted.size(); ++k) want(*forward_[wanted[k]]);
  std::sort(wanted.begin(), wanted.end());
  return wanted;
}

}  // namespace pipec
