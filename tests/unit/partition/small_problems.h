// Small problems, and what they cost by the definition.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "absl/status/status.h"
#include "compiler/partition/problem.h"
#include "runtime/base/least_memory.h"

namespace pipec {

// Chain of items with the given seconds, a tensor between neighbours.
inline PartitionProblem Chain(const std::vector<double>& seconds, int stages, double message = 0) {
  PartitionProblem problem;
  problem.stages = stages;
  for (double s : seconds) problem.items.push_back({s, 0, 0, false});
  for (int i = 0; i + 1 < static_cast<int>(seconds.size()); ++i)
    problem.tensors.push_back({i, {i + 1}, message});
  return problem;
}

inline PartitionProblem RandomProblem(std::mt19937& random, int most_items, bool memory,
                                      bool devices_shared) {
  auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  PartitionProblem problem;
  const int n = pick(1, most_items);
  for (int i = 0; i < n; ++i) {
    problem.items.push_back({pick(0, 20) * 0.37, pick(0, 50), pick(0, 20), i > 0 && pick(0, 5) == 0});
  }
  for (int i = 0; i + 1 < n; ++i) {
    for (int copies = pick(0, 2); copies > 0; --copies) {
      std::vector<int> consumers;
      for (int c = i + 1; c < n; ++c) {
        if (pick(0, 2) == 0) consumers.push_back(c);
      }
      if (!consumers.empty()) problem.tensors.push_back({i, consumers, pick(0, 10) * 0.53});
    }
  }
  for (int k = pick(0, 2); k > 0; --k) {
    std::vector<int> items;
    for (int i = 0; i < n; ++i) {
      if (pick(0, 2) == 0) items.push_back(i);
    }
    problem.shared.push_back({items, pick(0, 60)});
  }
  problem.stages = pick(1, std::min(n, 5));
  if (devices_shared) problem.stages = std::min(n, 4);
  if (memory) {
    for (int s = 0; s < problem.stages; ++s) problem.in_flight.push_back(pick(1, 4));
    for (int s = 0; s < problem.stages; ++s) problem.rank_of_stage.push_back(devices_shared ? s % 2 : s);
    problem.memory_limit = pick(20, 400);
    if (pick(0, 1)) {
      for (int s = 0; s < problem.stages; ++s) problem.versions.push_back(pick(1, 3));
      for (PartitionItem& item : problem.items) item.weight_bytes = pick(0, 20);
      for (PartitionShared& shared : problem.shared) shared.weight_bytes = pick(0, 20);
    }
  }
  return problem;
}

// Of a cut of the items in their order.
inline std::vector<int> FirstItems(const PartitionSolution& solution) {
  std::vector<int> first;
  for (int i = 0; i < static_cast<int>(solution.stage_of.size()); ++i) {
    if (i == 0 || solution.stage_of[i] != solution.stage_of[i - 1]) first.push_back(i);
  }
  return first;
}

// Of one cut.
struct CutValue {
  double bottleneck = 0;  // of the slowest device
  double squares = 0;     // of stages, with nothing made again
  double sum = 0;         // of devices
  int64_t memory = 0;     // of the fullest device, with everything made again that can be
  bool fits = true;
};

inline CutValue Value(const PartitionProblem& p, const std::vector<int>& stage_of) {
  CutValue value;
  std::vector<double> loads(p.stages, 0), seconds(p.stages, 0);
  std::vector<int64_t> bytes(p.stages, 0), devices(p.stages, 0);
  std::vector<std::array<PartitionRemake, kRemakeKinds>> remake(p.stages);  // by device
  for (size_t i = 0; i < p.items.size(); ++i) {
    const int s = stage_of[i];
    const int device = p.rank_of_stage.empty() ? s : p.rank_of_stage[s];
    loads[s] += p.items[i].seconds / (p.speed.empty() ? 1 : p.speed[device]);
    const int in_flight = p.in_flight.empty() ? 1 : p.in_flight[s];
    bytes[s] += p.items[i].parameter_bytes + (p.versions.empty() ? 1 : p.versions[s]) * p.items[i].weight_bytes +
                in_flight * p.items[i].activation_bytes;
    for (int k = 0; k < kRemakeKinds; ++k) {
      remake[device][k].bytes += in_flight * p.items[i].remake[k].bytes;
      remake[device][k].seconds += p.items[i].remake[k].seconds / (p.speed.empty() ? 1 : p.speed[device]);
    }
  }
  for (int s = 0; s < p.stages; ++s) {
    for (const PartitionTensor& t : p.tensors) {
      bool used_here = false, used_elsewhere = false;
      for (int c : t.consumers) (stage_of[c] == s ? used_here : used_elsewhere) = true;
      if (stage_of[t.producer] == s ? used_elsewhere : used_here) loads[s] += t.seconds;
    }
    for (const PartitionShared& shared : p.shared) {
      bool here = false;
      for (int i : shared.items) here |= stage_of[i] == s;
      if (here) bytes[s] += shared.bytes + (p.versions.empty() ? 1 : p.versions[s]) * shared.weight_bytes;
    }
    const int device = p.rank_of_stage.empty() ? s : p.rank_of_stage[s];
    seconds[device] += loads[s];
    devices[device] += bytes[s];
    value.squares += loads[s] * loads[s];
  }
  value.memory = *std::max_element(devices.begin(), devices.end());
  for (int device = 0; device < p.stages; ++device) {
    int64_t room = p.memory_limit;
    if (!p.memory_limits.empty() && device < static_cast<int>(p.memory_limits.size()))
      room = std::min(room, p.memory_limits[device]);
    room -= devices[device];
    value.fits &= room >= 0;
    // What is dearest to make again stays for as long as there is room.
    for (int k = kRemakeKinds - 1; k >= 0; --k) {
      const PartitionRemake& kind = remake[device][k];
      const int64_t stays = std::clamp<int64_t>(room, 0, kind.bytes);
      room -= stays;
      if (kind.bytes > 0) seconds[device] += kind.seconds * static_cast<double>(kind.bytes - stays) / kind.bytes;
    }
    value.bottleneck = std::max(value.bottleneck, seconds[device]);
    value.sum += seconds[device];
  }
  return value;
}

// Calls `visit` with the stage of every item for each way to cut items in this order into p.stages stages.
inline void ForEachCut(const PartitionProblem& p, const std::vector<int>& order,
                       const std::function<void(const std::vector<int>&)>& visit) {
  const int n = p.items.size();
  std::vector<int> stage_of(n, 0);
  std::function<void(int, int)> place = [&](int k, int stage) {
    if (k == n) {
      if (stage == p.stages - 1) visit(stage_of);
      return;
    }
    stage_of[order[k]] = stage;
    place(k + 1, stage);
    if (k > 0 && stage + 1 < p.stages && !p.items[order[k]].glued_to_previous) {
      stage_of[order[k]] = stage + 1;
      place(k + 1, stage + 1);
    }
  };
  place(0, 0);
}

inline std::vector<int> Identity(int n) {
  std::vector<int> order(n);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

// In the refusal of a problem that fits no memory, which carries the same number.
inline int64_t LeastMemoryNamed(const absl::Status& status) {
  const std::string text(status.message());
  const int64_t named = std::stoll(text.substr(text.find("less than ") + 10));
  EXPECT_EQ(LeastMemory(status), named);
  return named;
}

inline PartitionProblem WithLimit(PartitionProblem problem, int64_t bytes) {
  problem.memory_limit = bytes;
  return problem;
}

}  // namespace pipec
