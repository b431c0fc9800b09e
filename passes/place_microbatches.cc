#include "passes/place_microbatches.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "compiler/memory/bundles.h"
#include "compiler/memory/layout.h"
#include "runtime/base/status.h"

namespace pipec {
namespace {

// From where on a layout is good enough, over its bound.
constexpr double kEnough = 1.003;
// Of a draft, as PlacementEffort::items.
constexpr int kDraftItems = 1024;

using Lives = std::vector<Life> PassingBuffer::*;

// One of the two lists: what lies where.
struct PlacedList {
  // Every buffer of every microbatch, then those of a step: what it is, when it lives, and where.
  std::vector<int> buffers;
  std::vector<MemoryItem> items;
  MemoryLayout layout;
  // By passing buffer and microbatch; -1: not live.
  std::vector<std::vector<int64_t>> offsets;
};

// Both lists, placed.
struct Placement {
  PlacedList train, eval;
  int64_t peak() const { return std::max(train.layout.peak, eval.layout.peak); }
  int64_t bound() const { return std::max(MemoryLowerBound(train.items), MemoryLowerBound(eval.items)); }
};

class Placer {
 public:
  Placer(const PassingBuffers& passing, int64_t below, const PlacementEffort& effort, RankMemory& memory)
      : passing_(passing), below_(below), effort_(effort), memory_(memory) {}

  absl::Status Place() {
    ASSIGN_OR_RETURN(Placement placed, PlaceLists(std::min(kDraftItems, effort_.items), 0, 0));
    const int64_t limit = effort_.draft_limit - below_;
    if (effort_.draft_limit < 0 || (placed.bound() <= limit && limit < placed.peak())) {
      ASSIGN_OR_RETURN(Placement other, PlaceLists(effort_.items, effort_.steps, limit));
      if (other.peak() < placed.peak()) placed = std::move(other);
    }
    const auto& [train, eval] = placed;
    for (size_t k = 0; k < passing_.of_step.size(); ++k)
      memory_.buffers[passing_.of_step[k].buffer].offsets = {
          below_ + train.layout.offsets[train.items.size() - passing_.of_step.size() + k]};
    for (size_t k = 0; k < passing_.of_microbatches.size(); ++k)
      MakeSlots(train.offsets[k], eval.offsets[k], memory_.buffers[passing_.of_microbatches[k].buffer]);
    memory_.arena_bytes = below_ + placed.peak();
    memory_.lower_bound = below_ + placed.bound();
    CountPeaks(train.layout.peak < eval.layout.peak ? eval : train);
    return absl::OkStatus();
  }

 private:
  // So many buffers of a list, one a microbatch; a search stops where a list needs `enough` bytes or less.
  absl::StatusOr<Placement> PlaceLists(int most, int64_t steps, int64_t enough) {
    std::vector<BundledItem> samples;
    for (const PassingBuffer& p : passing_.of_microbatches) {
      const std::vector<Life>& lives = p.train.empty() ? p.eval : p.train;
      samples.push_back({{lives[0].lower, lives[0].upper, memory_.buffers[p.buffer].bytes}, p.group});
    }
    bundles_ = MakeBundles(samples, most / passing_.microbatches);
    Placement placed;
    ASSIGN_OR_RETURN(placed.train, PlaceList(&PassingBuffer::train, passing_.of_step, steps, enough));
    ASSIGN_OR_RETURN(placed.eval,
                     PlaceList(&PassingBuffer::eval, {}, steps, std::max(enough, placed.train.layout.peak)));
    return placed;
  }

  absl::StatusOr<PlacedList> PlaceList(Lives lives, const std::vector<StepBuffer>& of_step, int64_t steps,
                                       int64_t enough) const {
    std::vector<MemoryItem> items;
    std::vector<std::pair<int, int>> of;  // bundle and microbatch
    for (int b = 0; b < static_cast<int>(bundles_.size()); ++b) {
      for (int m = 0; m < passing_.microbatches; ++m) {
        const Life life = LifeOf(bundles_[b], lives, m);
        if (!life.live()) continue;
        items.push_back({life.lower, life.upper, bundles_[b].size});
        of.push_back({b, m});
      }
    }
    for (const StepBuffer& once : of_step)
      items.push_back({once.life.lower, once.life.upper, memory_.buffers[once.buffer].bytes});
    const double bound = static_cast<double>(std::max<int64_t>(1, below_ + MemoryLowerBound(items)));
    const MemoryLayout placed =
        SolveLayout(items, {.below = below_,
                            .enough = std::max(kEnough, static_cast<double>(below_ + enough) / bound),
                            .steps = steps,
                            .bisection = steps * 3 / 8});

    PlacedList list;
    list.offsets.assign(passing_.of_microbatches.size(), std::vector<int64_t>(passing_.microbatches, -1));
    for (size_t k = 0; k < of.size(); ++k) {
      const auto& [b, m] = of[k];
      for (size_t i = 0; i < bundles_[b].members.size(); ++i) {
        const int member = bundles_[b].members[i];
        const PassingBuffer& p = passing_.of_microbatches[member];
        const Life& life = (p.*lives)[m];
        if (life.live())
          Add(p.buffer, life, list.offsets[member][m] = placed.offsets[k] + bundles_[b].offsets[i], list);
      }
    }
    for (size_t k = 0; k < of_step.size(); ++k)
      Add(of_step[k].buffer, of_step[k].life, placed.offsets[of.size() + k], list);
    // A bundle may end lower than what lives in it together needs.
    for (size_t k = 0; k < list.items.size(); ++k)
      list.layout.peak = std::max(list.layout.peak,
                                  list.layout.offsets[k] + memory_.buffers[list.buffers[k]].aligned_bytes());
    RETURN_IF_ERROR(CheckLayout(list.items, list.layout));
    return list;
  }

  void Add(int buffer, const Life& life, int64_t offset, PlacedList& list) const {
    list.buffers.push_back(buffer);
    list.items.push_back({life.lower, life.upper, memory_.buffers[buffer].bytes});
    list.layout.offsets.push_back(offset);
  }

  Life LifeOf(const Bundle& bundle, Lives lives, int m) const {
    Life all;
    for (const int member : bundle.members) {
      const std::vector<Life>& own = passing_.of_microbatches[member].*lives;
      if (own.empty() || !own[m].live()) continue;
      all = all.live() ? Life{std::min(all.lower, own[m].lower), std::max(all.upper, own[m].upper)} : own[m];
    }
    return all;
  }

  // The distinct places in order of first use. Where a microbatch does not have the buffer, its slot is the first.
  void MakeSlots(const std::vector<int64_t>& train, const std::vector<int64_t>& eval, Buffer& buffer) {
    SlotClass tables;
    buffer.offsets.clear();
    const auto slot_of = [&](int64_t offset) {
      if (offset < 0) return 0;
      const auto found = std::find(buffer.offsets.begin(), buffer.offsets.end(), below_ + offset);
      if (found == buffer.offsets.end()) buffer.offsets.push_back(below_ + offset);
      return static_cast<int>(std::find(buffer.offsets.begin(), buffer.offsets.end(), below_ + offset) -
                              buffer.offsets.begin());
    };
    if (!passing_.of_microbatches.empty() && !passing_.of_microbatches[0].train.empty()) {
      for (const int64_t offset : train) tables.train.push_back(slot_of(offset));
    }
    for (const int64_t offset : eval) tables.eval.push_back(slot_of(offset));
    if (buffer.offsets.empty()) buffer.offsets = {0};
    tables.slots = buffer.slots();
    const auto [known, added] = classes_.try_emplace({tables.slots, tables.train, tables.eval},
                                                     static_cast<int>(memory_.slot_classes.size()));
    if (added) memory_.slot_classes.push_back(std::move(tables));
    buffer.slot_class = known->second;
  }

  // Adds what is live when most is.
  void CountPeaks(const PlacedList& list) {
    std::vector<std::pair<int64_t, int64_t>> changes;
    for (const MemoryItem& item : list.items) {
      changes.push_back({item.lower, item.size});
      changes.push_back({item.upper, -item.size});
    }
    std::sort(changes.begin(), changes.end());
    int64_t live = 0, most = 0, fullest = 0;
    for (const auto& [time, bytes] : changes) {
      live += bytes;
      if (live > most) most = live, fullest = time;
    }
    for (size_t k = 0; k < list.items.size(); ++k) {
      const Buffer& buffer = memory_.buffers[list.buffers[k]];
      if (list.items[k].lower <= fullest && fullest < list.items[k].upper)
        memory_.peaks[static_cast<int>(buffer.kind)] += buffer.aligned_bytes();
    }
  }

  const PassingBuffers& passing_;
  const int64_t below_;
  const PlacementEffort effort_;
  RankMemory& memory_;
  std::vector<Bundle> bundles_;
  std::map<std::tuple<int, std::vector<int>, std::vector<int>>, int> classes_;  // indices
};

}  // namespace

absl::Status PlaceMicrobatches(const PassingBuffers& passing, int64_t below, const PlacementEffort& effort,
                               RankMemory& memory) {
  RETURN_IF_ERROR(Placer(passing, below, effort, memory).Place());
  // What nothing touches lies anywhere.
  for (const Buffer& buffer : memory.buffers) {
    for (const int64_t offset : buffer.offsets)
      memory.arena_bytes = std::max(memory.arena_bytes, offset + buffer.aligned_bytes());
  }
  const int transient = static_cast<int>(BufferKind::kTransient);
  memory.peaks[transient] = 0;
  memory.peaks[transient] =
      memory.arena_bytes - std::accumulate(memory.peaks.begin(), memory.peaks.end(), int64_t{0});
  return absl::OkStatus();
}

}  // namespace pipec
